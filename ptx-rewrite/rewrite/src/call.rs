//! The text of a call of a device function.

use device::PREFIX;

/// A PTX type without its dot, and a register or a literal.
pub(crate) type Value<'a> = (&'a str, &'a str);

/// The address of the launch block, which most device functions want first.
pub(crate) const LAUNCH: Value<'static> = ("b64", "%crc_launch");

/// The thread's identity.
pub(crate) const ME: Value<'static> = ("b64", "%crc_me");

/// A call of the device function `name`, without [`PREFIX`]; `result` is the register that takes what
/// it returns.
pub(crate) fn call(name: &str, result: Option<Value<'_>>, arguments: &[Value<'_>]) -> String {
    let mut text = String::from("{\n");
    for (n, (ty, value)) in arguments.iter().enumerate() {
        text.push_str(&format!(
            ".param .{ty} crc_{n};\nst.param.{ty} [crc_{n}], {value};\n"
        ));
    }
    let names: Vec<String> = (0..arguments.len()).map(|n| format!("crc_{n}")).collect();
    let names = names.join(", ");
    match result {
        Some((ty, register)) => text.push_str(&format!(
            ".param .{ty} crc_result;\ncall (crc_result), {PREFIX}{name}, ({names});\n\
             ld.param.{ty} {register}, [crc_result];\n}}\n"
        )),
        None => text.push_str(&format!("call {PREFIX}{name}, ({names});\n}}\n")),
    }
    text
}
