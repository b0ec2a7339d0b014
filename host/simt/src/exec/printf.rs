//! `printf` as the device does it: C's conversions, arguments packed into a buffer.
//!
//! Source: CUDA C++ Programming Guide, "Formatted Output"; C23, 7.23.6.1.
//! Every argument stands at the next multiple of its size: 8 bytes for floating point, pointers
//! and `l`, `ll`, `z`, `j`, `t`; 4 for the other integers.

/// Where arguments and strings come from.
pub(crate) trait Source {
    /// Why reading can fail.
    type Error;
    /// The value at an offset in the argument buffer.
    fn argument(&mut self, offset: u64, bytes: u32) -> Result<u64, Self::Error>;
    /// The string at an address.
    fn string(&mut self, address: u64) -> Result<Vec<u8>, Self::Error>;
}

/// A conversion specification without its letter.
#[derive(Clone, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// Bytes of an integer: 1, 2, 4 or 8.
    bytes: u32,
}

/// Largest width or precision that is honoured.
const MAX_WIDTH: usize = 4096;

/// Formats; returns the text and the number of arguments.
pub(crate) fn format<S: Source>(format: &[u8], source: &mut S) -> Result<(Vec<u8>, u32), S::Error> {
    let mut out = Vec::new();
    let (mut offset, mut count) = (0u64, 0);
    let mut next = |source: &mut S, bytes: u32| {
        let at = offset.next_multiple_of(u64::from(bytes));
        offset = at + u64::from(bytes);
        count += 1;
        source.argument(at, bytes)
    };
    let mut rest = format;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let specification = rest;
        let mut spec = Spec {
            bytes: 4,
            ..Spec::default()
        };
        while let Some((&flag, after)) = rest.split_first() {
            match flag {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                b'0' => spec.zero = true,
                _ => break,
            }
            rest = after;
        }
        if let Some(after) = rest.strip_prefix(b"*") {
            rest = after;
            let width = next(source, 4)? as u32 as i32;
            spec.left |= width < 0;
            spec.width = (width.unsigned_abs() as usize).min(MAX_WIDTH);
        } else {
            spec.width = number(&mut rest);
        }
        if let Some(after) = rest.strip_prefix(b".") {
            rest = after;
            if let Some(after) = rest.strip_prefix(b"*") {
                rest = after;
                let precision = next(source, 4)? as u32 as i32;
                spec.precision = usize::try_from(precision).ok().map(|p| p.min(MAX_WIDTH));
            } else {
                spec.precision = Some(number(&mut rest));
            }
        }
        while let Some((&modifier, after)) = rest.split_first() {
            spec.bytes = match (modifier, spec.bytes) {
                (b'h', 4) => 2,
                (b'h', _) => 1,
                (b'l' | b'z' | b'j' | b't' | b'q', _) => 8,
                (b'L', _) => 8,
                _ => break,
            };
            rest = after;
        }
        let Some((&letter, after)) = rest.split_first() else {
            out.push(b'%');
            out.extend_from_slice(specification);
            break;
        };
        rest = after;
        let slot = if spec.bytes == 8 { 8 } else { 4 };
        match letter {
            b'%' => out.push(b'%'),
            b'd' | b'i' => {
                let unused = 64 - 8 * spec.bytes;
                let value = (next(source, slot)? << unused) as i64 >> unused;
                let digits = value.unsigned_abs().to_string();
                integer(&mut out, &spec, sign(&spec, value < 0), "", &digits);
            }
            b'u' | b'o' | b'x' | b'X' => {
                let value = next(source, slot)? & (u64::MAX >> (64 - 8 * spec.bytes));
                let (prefix, digits) = match letter {
                    b'u' => ("", value.to_string()),
                    b'o' => ("0", format!("{value:o}")),
                    b'x' => ("0x", format!("{value:x}")),
                    _ => ("0X", format!("{value:X}")),
                };
                let prefix = if spec.alternate && value != 0 {
                    prefix
                } else {
                    ""
                };
                integer(&mut out, &spec, "", prefix, &digits);
            }
            b'c' => {
                let value = next(source, 4)? as u8;
                pad(
                    &mut out,
                    &Spec {
                        zero: false,
                        ..spec
                    },
                    "",
                    &[value],
                );
            }
            b's' => {
                let address = next(source, 8)?;
                let mut text = match address {
                    0 => b"(null)".to_vec(),
                    address => source.string(address)?,
                };
                text.truncate(spec.precision.unwrap_or(text.len()));
                pad(
                    &mut out,
                    &Spec {
                        zero: false,
                        ..spec
                    },
                    "",
                    &text,
                );
            }
            b'p' => {
                let value = next(source, 8)?;
                let text = if value == 0 {
                    "(nil)".to_owned()
                } else {
                    format!("{value:#x}")
                };
                pad(
                    &mut out,
                    &Spec {
                        zero: false,
                        ..spec
                    },
                    "",
                    text.as_bytes(),
                );
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_bits(next(source, 8)?);
                float(&mut out, &spec, letter, value);
            }
            b'n' => {
                // Not supported by devices; the argument is skipped.
                next(source, 8)?;
            }
            _ => {
                let length = specification.len() - rest.len();
                out.push(b'%');
                out.extend_from_slice(&specification[..length]);
            }
        }
    }
    Ok((out, count))
}

fn number(rest: &mut &[u8]) -> usize {
    let mut value = 0usize;
    while let Some((&digit @ b'0'..=b'9', after)) = rest.split_first() {
        value = (value * 10 + usize::from(digit - b'0')).min(MAX_WIDTH);
        *rest = after;
    }
    value
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match () {
        () if negative => "-",
        () if spec.plus => "+",
        () if spec.space => " ",
        () => "",
    }
}

fn integer(out: &mut Vec<u8>, spec: &Spec, sign: &str, prefix: &str, digits: &str) {
    let mut text = String::new();
    let precision = spec.precision.unwrap_or(1);
    // No digits at all for zero with a precision of zero.
    if !(precision == 0 && digits == "0") {
        text = "0".repeat(precision.saturating_sub(digits.len())) + digits;
    }
    // A precision switches zero padding off.
    let spec = Spec {
        zero: spec.zero && spec.precision.is_none(),
        ..spec.clone()
    };
    pad(out, &spec, &format!("{sign}{prefix}"), text.as_bytes());
}

/// Writes `lead` and `text`, padded to the width.
fn pad(out: &mut Vec<u8>, spec: &Spec, lead: &str, text: &[u8]) {
    let missing = spec.width.saturating_sub(lead.len() + text.len());
    let fill = |out: &mut Vec<u8>, byte| out.extend(std::iter::repeat_n(byte, missing));
    if !spec.left && !spec.zero {
        fill(out, b' ');
    }
    out.extend_from_slice(lead.as_bytes());
    if !spec.left && spec.zero {
        fill(out, b'0');
    }
    out.extend_from_slice(text);
    if spec.left {
        fill(out, b' ');
    }
}

fn float(out: &mut Vec<u8>, spec: &Spec, letter: u8, value: f64) {
    let upper = letter.is_ascii_uppercase();
    let sign = sign(spec, value.is_sign_negative());
    let value = value.abs();
    let (text, zero) = if value.is_nan() {
        ("nan".to_owned(), false)
    } else if value.is_infinite() {
        ("inf".to_owned(), false)
    } else {
        let precision = spec.precision.unwrap_or(6);
        let text = match letter.to_ascii_lowercase() {
            b'f' => fixed(value, precision, spec.alternate),
            b'e' => exponential(value, precision, spec.alternate),
            b'a' => hexadecimal(value, spec.precision),
            _ => general(value, precision.max(1), spec.alternate),
        };
        (text, spec.zero)
    };
    let text = if upper { text.to_uppercase() } else { text };
    pad(
        out,
        &Spec {
            zero,
            ..spec.clone()
        },
        sign,
        text.as_bytes(),
    );
}

fn fixed(value: f64, precision: usize, point: bool) -> String {
    let mut text = format!("{value:.precision$}");
    if point && precision == 0 {
        text.push('.');
    }
    text
}

/// Rust writes `1.5e2`, C `1.5e+02`.
fn exponential(value: f64, precision: usize, point: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    let point = if point && precision == 0 { "." } else { "" };
    format!("{mantissa}{point}e{sign}{digits:0>2}")
}

fn general(value: f64, precision: usize, keep_zeroes: bool) -> String {
    let rounded = format!("{value:.*e}", precision - 1);
    let exponent: i32 = rounded
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    let wide = exponent < -4 || exponent >= precision as i32;
    let text = if wide {
        exponential(value, precision - 1, keep_zeroes)
    } else {
        let digits = (precision as i32 - 1 - exponent).max(0) as usize;
        fixed(value, digits, keep_zeroes)
    };
    if keep_zeroes || !text.contains('.') {
        return text;
    }
    let (mantissa, exponent) = match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, format!("e{exponent}")),
        None => (text.as_str(), String::new()),
    };
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    format!("{mantissa}{exponent}")
}

fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let mut fraction = bits & ((1 << 52) - 1);
    let biased = (bits >> 52) as i64;
    let (mut lead, exponent) = match biased {
        0 if fraction == 0 => (0, 0),
        0 => (0, -1022),
        _ => (1, biased - 1023),
    };
    let mut digits = 13;
    if let Some(precision) = precision.filter(|&precision| precision < 13) {
        let cut = 4 * (13 - precision as u32);
        let whole = lead << 52 | fraction;
        let half = 1u64 << (cut - 1);
        let odd = whole >> cut & 1;
        let rounded = (whole + half - 1 + odd) >> cut << cut;
        lead = rounded >> 52;
        fraction = rounded & ((1 << 52) - 1);
        digits = precision;
    }
    let mut text = format!("{fraction:013x}");
    text.truncate(digits);
    if precision.is_none() {
        text.truncate(text.trim_end_matches('0').len());
    }
    let point = if text.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{text}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Buffer(Vec<u8>);

    impl Source for Buffer {
        type Error = std::convert::Infallible;
        fn argument(&mut self, offset: u64, bytes: u32) -> Result<u64, Self::Error> {
            let mut value = [0; 8];
            let (start, count) = (offset as usize, bytes as usize);
            value[..count].copy_from_slice(&self.0[start..start + count]);
            Ok(u64::from_le_bytes(value))
        }
        fn string(&mut self, address: u64) -> Result<Vec<u8>, Self::Error> {
            Ok(format!("s{address}").into_bytes())
        }
    }

    fn print(template: &str, arguments: &[&[u8]]) -> String {
        let mut buffer = Vec::new();
        for argument in arguments {
            while buffer.len() % argument.len() != 0 {
                buffer.push(0xcc);
            }
            buffer.extend_from_slice(argument);
        }
        let Ok((text, _)) = format(template.as_bytes(), &mut Buffer(buffer));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn integers() {
        let minus = (-42i32).to_le_bytes();
        assert_eq!(
            print("%d|%5d|%-5d|%05d|%+.4d|%u", &[&minus as &[u8]; 6]),
            "-42|  -42|-42  |-0042|-0042|4294967254"
        );
        assert_eq!(
            print(
                "%x|%#X|%o|%hhx|%.0d|",
                &[&255i32.to_le_bytes(); 4]
                    .iter()
                    .copied()
                    .chain([&0i32.to_le_bytes()])
                    .map(|a| a as &[u8])
                    .collect::<Vec<_>>()
            ),
            "ff|0XFF|377|ff||"
        );
        let wide = (-5i64).to_le_bytes();
        assert_eq!(
            print(
                "%c%lld %zu%%",
                &[&[65, 0, 0, 0], &wide, &7u64.to_le_bytes()]
            ),
            "A-5 7%"
        );
        assert_eq!(print("%*d|", &[&6i32.to_le_bytes(), &minus]), "   -42|");
    }

    #[test]
    fn floats() {
        let d = |x: f64| x.to_le_bytes();
        assert_eq!(
            print(
                "%f|%.2f|%8.3f|%e|%g|%g|%g",
                &[
                    &d(1.5),
                    &d(-2.345),
                    &d(3.0),
                    &d(12345.678),
                    &d(0.0001),
                    &d(1e-5),
                    &d(1e6)
                ]
            ),
            "1.500000|-2.35|   3.000|1.234568e+04|0.0001|1e-05|1e+06"
        );
        assert_eq!(
            print(
                "%F|%5.1f|%-8g|%G|%a",
                &[
                    &d(f64::INFINITY),
                    &d(f64::NAN),
                    &d(2.5),
                    &d(1e-10),
                    &d(-0.75)
                ]
            ),
            "INF|  nan|2.5     |1E-10|-0x1.8p-1"
        );
    }

    #[test]
    fn strings_and_oddities() {
        assert_eq!(
            print(
                "[%s] [%6s] [%.1s] %p",
                &[
                    &1u64.to_le_bytes(),
                    &2u64.to_le_bytes(),
                    &3u64.to_le_bytes(),
                    &255u64.to_le_bytes()
                ]
            ),
            "[s1] [    s2] [s] 0xff"
        );
        assert_eq!(print("100%", &[]), "100%");
        assert_eq!(print("%y %d", &[&3i32.to_le_bytes()]), "%y 3");
    }
}
