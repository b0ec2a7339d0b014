//! `--arg`: kernel parameters from the command line.

use std::fmt;

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgSpec {
    /// Passed by value.
    Scalar(Values),
    /// Put into device memory; the kernel gets its address.
    Buffer(Values),
}

/// Values of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    ty: Ty,
    pub(crate) bytes: Vec<u8>,
}

/// A type as PTX names it; `Raw` is the bytes of `buf:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    U(usize),
    S(usize),
    F32,
    F64,
    Raw,
}

/// More is surely a slip.
const LARGEST: u64 = 8 << 30;

impl ArgSpec {
    /// Reads one specification; the help of `--arg` shows the forms.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (kind, value) = match text.split_once(':') {
            Some((kind, value)) => (kind, Some(value)),
            None => (text, None),
        };
        if kind == "buf" {
            return raw(value.ok_or("expected buf:BYTES or buf:FILE")?);
        }
        let Some((ty, length)) = kind.strip_suffix(']').and_then(|kind| kind.split_once('['))
        else {
            let ty = Ty::parse(kind)?;
            let value =
                value.ok_or_else(|| format!("`{text}` has no value: write {kind}:VALUE"))?;
            let bytes = ty.encode(value)?;
            return Ok(Self::Scalar(Values { ty, bytes }));
        };
        let ty = Ty::parse(ty)?;
        let length: u64 = length
            .parse()
            .map_err(|_| format!("`{length}` is not a number of elements"))?;
        let bytes = length
            .checked_mul(ty.width() as u64)
            .filter(|&bytes| bytes > 0 && bytes <= LARGEST)
            .ok_or_else(|| format!("`{text}` is empty or larger than 8 GiB"))?;
        let Some(list) = value else {
            let bytes = vec![0; bytes as usize];
            return Ok(Self::Buffer(Values { ty, bytes }));
        };
        let elements: Vec<&str> = list.split(',').collect();
        if elements.len() as u64 != length {
            return Err(format!("{} values for {length} elements", elements.len()));
        }
        let encoded: Result<Vec<Vec<u8>>, String> = elements
            .iter()
            .map(|element| ty.encode(element.trim()))
            .collect();
        let bytes = encoded?.concat();
        Ok(Self::Buffer(Values { ty, bytes }))
    }
}

fn raw(value: &str) -> Result<ArgSpec, String> {
    let ty = Ty::Raw;
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        let bytes: u64 = value
            .parse()
            .map_err(|_| format!("`{value}` is too large"))?;
        if bytes == 0 || bytes > LARGEST {
            return Err("a buffer has 1 byte to 8 GiB".to_owned());
        }
        let bytes = vec![0; bytes as usize];
        return Ok(ArgSpec::Buffer(Values { ty, bytes }));
    }
    match std::fs::read(value) {
        Ok(bytes) if bytes.is_empty() => Err(format!("{value} is empty")),
        Ok(bytes) => Ok(ArgSpec::Buffer(Values { ty, bytes })),
        Err(error) => Err(format!("cannot read {value}: {error}")),
    }
}

impl Ty {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "u8" | "b8" => Ok(Self::U(1)),
            "u16" | "b16" => Ok(Self::U(2)),
            "u32" | "b32" => Ok(Self::U(4)),
            "u64" | "b64" => Ok(Self::U(8)),
            "s8" => Ok(Self::S(1)),
            "s16" => Ok(Self::S(2)),
            "s32" => Ok(Self::S(4)),
            "s64" => Ok(Self::S(8)),
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            other => Err(format!(
                "unknown type `{other}`: u8 to u64, s8 to s64, b8 to b64, f32, f64 or buf"
            )),
        }
    }

    fn width(self) -> usize {
        match self {
            Self::U(width) | Self::S(width) => width,
            Self::F32 => 4,
            Self::F64 => 8,
            Self::Raw => 1,
        }
    }

    fn encode(self, text: &str) -> Result<Vec<u8>, String> {
        let bad = || format!("`{text}` is not a {self}");
        match self {
            Self::F32 => Ok(text
                .parse::<f32>()
                .map_err(|_| bad())?
                .to_le_bytes()
                .to_vec()),
            Self::F64 => Ok(text
                .parse::<f64>()
                .map_err(|_| bad())?
                .to_le_bytes()
                .to_vec()),
            Self::U(_) | Self::S(_) | Self::Raw => {
                let value = integer(text).ok_or_else(bad)?;
                let bits = self.width() as u32 * 8;
                let (low, high) = match self {
                    Self::S(_) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                    _ => (0, (1i128 << bits) - 1),
                };
                if !(low..=high).contains(&value) {
                    return Err(format!("`{text}` does not fit {self}"));
                }
                Ok(value.to_le_bytes()[..self.width()].to_vec())
            }
        }
    }

    fn show(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        match self {
            Self::U(_) => unsigned.to_string(),
            Self::S(width) => {
                let unused = 64 - width as u32 * 8;
                ((unsigned << unused) as i64 >> unused).to_string()
            }
            Self::F32 => f32::from_bits(unsigned as u32).to_string(),
            Self::F64 => f64::from_bits(unsigned).to_string(),
            Self::Raw => format!("{unsigned:02x}"),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U(width) => write!(f, "u{}", width * 8),
            Self::S(width) => write!(f, "s{}", width * 8),
            Self::F32 => f.write_str("f32"),
            Self::F64 => f.write_str("f64"),
            Self::Raw => f.write_str("buf"),
        }
    }
}

/// Decimal or `0x…`, with a sign.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        // No second sign behind the first one.
        Some(hex) if hex.bytes().all(|c| c.is_ascii_hexdigit()) => {
            i128::from_str_radix(hex, 16).ok()?
        }
        None if digits.bytes().all(|c| c.is_ascii_digit()) => digits.parse().ok()?,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

impl Values {
    /// The same type, other contents.
    pub(crate) fn with(&self, bytes: Vec<u8>) -> Self {
        Self { ty: self.ty, bytes }
    }
}

/// `u32[4] = 1 2 3 4`
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elements = self.bytes.chunks(self.ty.width());
        write!(f, "{}[{}] =", self.ty, elements.len())?;
        for element in elements {
            write!(f, " {}", self.ty.show(element))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(text: &str) -> Vec<u8> {
        match ArgSpec::parse(text) {
            Ok(ArgSpec::Scalar(values)) => values.bytes,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn shown(text: &str) -> String {
        match ArgSpec::parse(text) {
            Ok(ArgSpec::Buffer(values)) => values.to_string(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_forms_of_the_help_are_read() {
        assert_eq!(scalar("u32:5"), [5, 0, 0, 0]);
        assert_eq!(scalar("s16:-2"), [254, 255]);
        assert_eq!(scalar("b64:0xff"), [255, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(scalar("f32:1.5"), 1.5f32.to_le_bytes());
        assert_eq!(shown("u32[4]:1,2,3,4"), "u32[4] = 1 2 3 4");
        assert_eq!(shown("s8[2]:-1, 1"), "s8[2] = -1 1");
        assert_eq!(shown("f64[1]:0.25"), "f64[1] = 0.25");
        assert_eq!(shown("u8[3]"), "u8[3] = 0 0 0");
        assert_eq!(shown("buf:2"), "buf[2] = 00 00");
    }

    #[test]
    fn everything_else_is_refused() {
        let bad = [
            "",
            "u32",
            "u32:",
            "u32:x",
            "u8:256",
            "s8:128",
            "u32:-1",
            "q32:1",
            "u32[2]:1",
            "u32[0]",
            "u32[x]",
            "u64[99999999999999999]",
            "buf",
            "buf:",
            "buf:0",
            "buf:/no/such/file",
            "u32:--1",
            "u32:0x-1",
            "u32:+1",
        ];
        for text in bad {
            assert!(ArgSpec::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_becomes_a_buffer() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [1, 2, 255]).unwrap();
        assert_eq!(
            shown(&format!("buf:{}", file.path().display())),
            "buf[3] = 01 02 ff"
        );
    }
}
