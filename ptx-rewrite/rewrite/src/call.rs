//! The text of a call of a device function.

use device::PREFIX;

/// A value that a function takes or returns.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    /// A PTX type without its dot.
    pub(crate) ty: &'a str,
    /// A register or a literal.
    pub(crate) text: &'a str,
}

impl<'a> Value<'a> {
    /// Of a type without its dot, in a register or a literal.
    pub(crate) const fn new(ty: &'a str, text: &'a str) -> Self {
        Self { ty, text }
    }
}

/// The address of the launch block, which most device functions want first.
pub(crate) const LAUNCH: Value<'static> = Value::new("b64", "%crc_launch");

/// The thread's identity.
pub(crate) const ME: Value<'static> = Value::new("b64", "%crc_me");

/// A call of the device function `name`, without [`PREFIX`]; `result` is the register that takes what
/// it returns.
pub(crate) fn call(name: &str, result: Option<Value<'_>>, arguments: &[Value<'_>]) -> String {
    let mut text = String::from("{\n");
    for (n, Value { ty, text: value }) in arguments.iter().enumerate() {
        text.push_str(&format!(
            ".param .{ty} crc_{n};\nst.param.{ty} [crc_{n}], {value};\n"
        ));
    }
    let names: Vec<String> = (0..arguments.len()).map(|n| format!("crc_{n}")).collect();
    let names = names.join(", ");
    match result {
        Some(Value { ty, text: register }) => text.push_str(&format!(
            ".param .{ty} crc_result;\ncall (crc_result), {PREFIX}{name}, ({names});\n\
             ld.param.{ty} {register}, [crc_result];\n}}\n"
        )),
        None => text.push_str(&format!("call {PREFIX}{name}, ({names});\n}}\n")),
    }
    text
}
