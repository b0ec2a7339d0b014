//! Elements of matrices: their widths and values, and kernels that run over an array of them.

use simt::Launch;

use super::load;

/// Bits of an element.
pub(crate) fn bits(ty: &str) -> usize {
    match ty {
        "b1" => 1,
        "s4" | "u4" => 4,
        "s8" | "u8" | "e4m3" | "e5m2" => 8,
        "f16" | "bf16" => 16,
        "f64" => 64,
        _ => 32,
    }
}

/// All bits of an element.
pub(crate) fn keep(ty: &str) -> u64 {
    u64::MAX >> (64 - bits(ty))
}

/// The value of a float with so many bits of exponent and fraction, by the definition.
pub(crate) fn decode(bits: u64, exponent: u32, fraction: u32) -> f64 {
    let sign = if bits >> (exponent + fraction) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    let biased = bits >> fraction & ((1 << exponent) - 1);
    let part = (bits & ((1 << fraction) - 1)) as f64 / (1u64 << fraction) as f64;
    let bias = (1i32 << (exponent - 1)) - 1;
    if biased == (1 << exponent) - 1 {
        return if part == 0.0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if biased == 0 {
        return sign * part * 2f64.powi(1 - bias);
    }
    sign * (1.0 + part) * 2f64.powi(biased as i32 - bias)
}

/// The value of an element's bits.
pub(crate) fn value(ty: &str, bits: u64) -> f64 {
    match ty {
        "f16" => decode(bits, 5, 10),
        "bf16" => decode(bits, 8, 7),
        "tf32" => decode(bits >> 13, 8, 10),
        "e4m3" if bits & 0x7f == 0x7f => f64::NAN,
        // The largest exponent is one as any other.
        "e4m3" if bits >> 3 & 15 == 15 => {
            let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
            sign * (256.0 + 32.0 * (bits & 7) as f64)
        }
        "e4m3" => decode(bits, 4, 3),
        "e5m2" => decode(bits, 5, 2),
        "f32" => f64::from(f32::from_bits(bits as u32)),
        "s4" => f64::from((bits as i8) << 4 >> 4),
        "s8" => f64::from(bits as i8),
        "s32" => f64::from(bits as i32),
        _ => bits as f64,
    }
}

/// Runs a body with 32 threads over `data`, which it may change.
pub(crate) fn run_over(text: &str, data: &[u64]) -> Vec<u64> {
    let mut rig = load(text);
    let memory = rig.device.memory_mut();
    let address = memory.alloc(8 * data.len() as u64).unwrap();
    let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
    memory.write(address, &bytes).unwrap();
    let launch = Launch::new([1; 3], [32, 1, 1], address.to_le_bytes().to_vec());
    rig.device.launch(rig.module, "k", &launch).unwrap();
    let mut bytes = vec![0; bytes.len()];
    rig.device.memory().read(address, &mut bytes).unwrap();
    bytes
        .chunks(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

/// `{%r4, %r5}`
pub(crate) fn list(name: &str, first: usize, count: usize) -> String {
    let names: Vec<_> = (first..first + count)
        .map(|n| format!("%{name}{n}"))
        .collect();
    format!("{{{}}}", names.join(", "))
}
