//! Functions that a kernel calls, and how it comes to their addresses.

use super::super::kernel::{Act, Call, Kernel, Step};
use super::Writer;

/// What stands in a function.
struct Outlined {
    call: Call,
    acts: Vec<Act>,
}

impl Writer {
    /// Writes the functions of a kernel, and the tables of their addresses.
    pub(super) fn functions(&mut self, kernel: &Kernel) {
        let mut outlined = Vec::new();
        collect(&kernel.steps, &mut outlined);
        for (number, Outlined { acts, .. }) in outlined.iter().enumerate() {
            let name = self.name("does", number);
            self.top(format!(
                ".func {name}(.param .b64 memory, .param .b64 tile)"
            ));
            self.top("{");
            self.registers();
            let acts: Vec<&Act> = acts.iter().collect();
            if uses_shared(&acts) {
                self.line("ld.param.u64 %shared0, [tile];");
            }
            self.bases(&acts);
            acts.iter().for_each(|act| self.act(act, ""));
            self.line("ret;");
            self.top("}");
            self.top("");
        }
        let looked_up = |call: &Call| matches!(call, Call::Table | Call::Virtual);
        if outlined.iter().any(|of| looked_up(&of.call)) {
            let all = (0..outlined.len()).map(|number| self.name("does", number));
            let all = all.collect::<Vec<_>>().join(", ");
            let (table, object) = (self.name("table", 0), self.name("object", 0));
            let count = outlined.len();
            self.top(format!(
                ".global .align 8 .u64 {table}[{count}] = {{{all}}};"
            ));
            self.top(format!(
                ".global .align 8 .u64 {object} = generic({table});"
            ));
        }
    }

    /// Calls the next function, which does these acts.
    pub(super) fn call(&mut self, call: Call, acts: &[Act]) {
        let number = self.called;
        self.called += 1;
        let (name, table) = (self.name("does", number), self.name("table", 0));
        let behind = 8 * number;
        match call {
            Call::Inline | Call::Direct => {}
            Call::Pointer => self.line(format!("mov.u64 %target, {name};")),
            Call::Table => self.line(format!("ld.global.u64 %target, [{table}+{behind}];")),
            Call::Virtual => {
                let object = self.name("object", 0);
                self.line(format!("ld.global.u64 %methods, [{object}];"));
                self.line(format!("ld.u64 %target, [%methods+{behind}];"));
            }
        }
        let acts: Vec<&Act> = acts.iter().collect();
        let tile = if uses_shared(&acts) { "%shared0" } else { "0" };
        self.line("{");
        self.line(".param .b64 argument0;");
        self.line(".param .b64 argument1;");
        self.line("st.param.b64 [argument0], %global0;");
        self.line(format!("st.param.b64 [argument1], {tile};"));
        if call == Call::Direct {
            self.line(format!("call {name}, (argument0, argument1);"));
        } else {
            let prototype = self.label();
            self.line(format!(
                "{prototype}: .callprototype _ (.param .b64 _, .param .b64 _);"
            ));
            self.line(format!(
                "call %target, (argument0, argument1), {prototype};"
            ));
        }
        self.line("}");
    }

    fn name(&self, what: &str, number: usize) -> String {
        format!("{}_{what}{number}", self.entry)
    }

    /// A line outside of functions.
    fn top(&mut self, text: impl Into<String>) {
        self.text.lines.push(text.into());
    }
}

fn uses_shared(acts: &[&Act]) -> bool {
    let mut targets = acts.iter().flat_map(|act| act.targets());
    targets.any(|target| target.shared)
}

/// What stands in functions, in the order in which it is called.
fn collect(steps: &[Step], into: &mut Vec<Outlined>) {
    for step in steps {
        match step {
            Step::Acts { call, acts, .. } if *call != Call::Inline => {
                into.push(Outlined {
                    call: *call,
                    acts: acts.clone(),
                });
            }
            Step::Loop { steps, .. } => collect(steps, into),
            _ => {}
        }
    }
}
