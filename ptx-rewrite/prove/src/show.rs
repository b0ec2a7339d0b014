//! A summary in readable notation.

use std::fmt::Write;

use crate::Summary;
use crate::graph::{Addend, Advance, Comparison, Condition, Node, NodeId, Op};
use crate::problem::Axis;
use crate::summary::{AddressSpace, Plan};

/// Longest text of one value; what is beyond is left out.
const LONGEST: usize = 400;

impl Summary {
    /// What is known of the kernel before a launch, a line each: loops, barriers, and each access with its address and
    /// the conditions under which it is executed.
    pub fn describe(&self) -> Vec<String> {
        let Some(plan) = &self.plan else {
            let text = self.refused.as_deref().unwrap_or("not analysed");
            return vec![format!("not proved for any launch: {text}")];
        };
        let mut all = Vec::new();
        if let Some(why) = &plan.barriers {
            all.push(format!("barriers are not relied on: {why}"));
        }
        if let Some(why) = &plan.watched {
            all.push(format!("always checked, even if no access can race: {why}"));
        }
        for (index, of) in plan.graph.loops.iter().enumerate() {
            let header = &plan.graph.items[of.counter as usize];
            let mut text = format!("loop k{index} at {}", plan.line(header.statement));
            if let Some(outer) = of.parent {
                let _ = write!(text, ", in loop k{outer}");
            }
            for test in &of.tests {
                let mut value = plan.value(test.header);
                for &Addend { node, negated } in &test.addends {
                    let sign = if negated { '-' } else { '+' };
                    let _ = write!(value, " {sign} {}", plan.value(node));
                }
                let bound = plan.value(test.bound);
                let sign = sign(test.comparison);
                let _ = write!(text, ", goes on while {value} {sign} {bound}");
            }
            if of.tests.is_empty() {
                text.push_str(", without a bound that is followed");
            }
            all.push(text);
        }
        for (access, site) in self.accesses.iter().zip(&plan.sites) {
            let what = match site.kind {
                ptx::isa::MemoryKind::Load => "load",
                ptx::isa::MemoryKind::Store => "store",
                _ => "atomic",
            };
            let address_space = match site.address_space {
                AddressSpace::Global => "global",
                AddressSpace::Shared => "shared",
                AddressSpace::Generic => "generic",
            };
            let mut text = format!(
                "{} ({}): {what} of {} bytes, {address_space}",
                plan.line(access.statement),
                format_args!("PTX line {}", access.ptx_line),
                site.bytes
            );
            let address = match site.address {
                Some(node) => plan.value(node),
                None => "not followed".to_owned(),
            };
            let _ = write!(text, ", at {address}");
            let conditions = plan.graph.holds[site.block].iter().chain(&site.guard);
            let conditions: Vec<String> = conditions.map(|&of| plan.condition(of)).collect();
            if !conditions.is_empty() {
                let _ = write!(text, ", where {}", conditions.join(" and "));
            }
            let mut loops: Vec<String> = plan
                .graph
                .around(site.home)
                .map(|of| format!("k{of}"))
                .collect();
            loops.reverse();
            if !loops.is_empty() {
                let _ = write!(text, ", in loop {}", loops.join(", "));
            }
            all.push(text);
        }
        all
    }
}

impl Plan {
    fn condition(&self, (node, holds): Condition) -> String {
        let text = self.value(node);
        if holds { text } else { format!("not {text}") }
    }

    /// A value in readable notation.
    fn value(&self, node: NodeId) -> String {
        let mut text = String::new();
        self.write(&mut text, node, 0);
        text
    }

    fn write(&self, text: &mut String, node: NodeId, depth: u32) {
        if text.len() > LONGEST || depth > 24 {
            if !text.ends_with("...") {
                text.push_str("...");
            }
            return;
        }
        let graph = &self.graph;
        let node = graph.resolve(node);
        let item = &graph.items[node as usize];
        let deeper = depth + 1;
        let two = |text: &mut String, left: NodeId, sign: &str, right: NodeId| {
            text.push('(');
            self.write(text, left, deeper);
            let _ = write!(text, " {sign} ");
            self.write(text, right, deeper);
            text.push(')');
        };
        match &item.node {
            Node::Number(value) => {
                let _ = write!(text, "{}", crate::value::centered(*value, item.bits));
            }
            Node::Thread(of) => text.push_str(&format!("tid.{}", letter(*of))),
            Node::Block(of) => text.push_str(&format!("ctaid.{}", letter(*of))),
            Node::Threads(of) => text.push_str(&format!("ntid.{}", letter(*of))),
            Node::Blocks(of) => text.push_str(&format!("nctaid.{}", letter(*of))),
            Node::Parameter { offset, .. } => {
                let _ = write!(text, "parameter+{offset}");
            }
            Node::Global(index) => text.push_str(&self.globals[*index as usize]),
            Node::Shared(index) => text.push_str(&self.shared[*index as usize].name),
            Node::Operation { op, inputs, .. } => {
                let [a, b, _] = *inputs;
                match sign_of(*op) {
                    Some(sign) => two(text, a, sign, b),
                    None if matches!(op, Op::Convert { .. } | Op::Generic | Op::FromGeneric) => {
                        self.write(text, a, deeper);
                    }
                    None => {
                        let _ = write!(text, "{op:?}(");
                        self.write(text, a, deeper);
                        if !matches!(op, Op::Not | Op::Neg | Op::Abs) {
                            text.push_str(", ");
                            self.write(text, b, deeper);
                        }
                        text.push(')');
                    }
                }
            }
            Node::Compare {
                comparison,
                left,
                right,
                ..
            } => two(text, *left, sign(*comparison), *right),
            Node::All(left, right) => two(text, *left, "and", *right),
            Node::Any(left, right) => two(text, *left, "or", *right),
            Node::Opposite(of) => {
                text.push_str("not ");
                self.write(text, *of, deeper);
            }
            Node::Select { on, yes, no } => {
                text.push('(');
                self.write(text, *on, deeper);
                text.push_str(" ? ");
                self.write(text, *yes, deeper);
                text.push_str(" : ");
                self.write(text, *no, deeper);
                text.push(')');
            }
            Node::Join { inputs, .. } => {
                text.push_str("one of {");
                for (n, (input, _)) in inputs.iter().enumerate() {
                    if n > 0 {
                        text.push_str(", ");
                    }
                    self.write(text, *input, deeper);
                }
                text.push('}');
            }
            Node::Header {
                of,
                first,
                kind: Advance::By(step),
                ..
            } if first.len() == 1 => {
                text.push('(');
                self.write(text, first[0], deeper);
                for &Addend { node, negated } in step {
                    text.push_str(if negated { " - " } else { " + " });
                    self.write(text, node, deeper);
                    let _ = write!(text, "*k{of}");
                }
                text.push(')');
            }
            Node::Header { of, .. } => {
                let _ = write!(text, "a value that loop k{of} changes");
            }
            Node::Counter(of) => {
                let _ = write!(text, "k{of}");
            }
            Node::Out { value, of } => {
                let _ = write!(text, "(after loop k{of}: ");
                self.write(text, *value, deeper);
                text.push(')');
            }
            Node::Opaque { .. } | Node::Pending | Node::Copy(_) => {
                let _ = write!(text, "[value from {}]", self.line(item.statement));
            }
        }
    }
}

fn letter(of: Axis) -> char {
    match of {
        Axis::X => 'x',
        Axis::Y => 'y',
        Axis::Z => 'z',
    }
}

fn sign(of: Comparison) -> &'static str {
    match of {
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
    }
}

fn sign_of(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Add => "+",
        Op::Sub => "-",
        Op::Mul | Op::MulWide => "*",
        Op::Div => "/",
        Op::Rem => "%",
        Op::Shl => "<<",
        Op::Shr => ">>",
        Op::And => "&",
        Op::Or => "|",
        Op::Xor => "^",
        _ => return None,
    })
}
