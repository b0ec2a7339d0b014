//! Integer expressions in the element index `i`, for arguments and expected outputs:
//! `out: 0 u32[64] = i * 2 + 1`.
//!
//! C operators with C precedence over wrapping 64-bit values; `/`, `%`, `>>` and comparisons are
//! unsigned, and comparisons give 0 or 1. `sum(k < 16, …)` adds up, `min` and `max` are signed, and
//! a header may define functions: `where: a(r, k) = 3 * r + k`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// Calls of functions within functions that are followed.
const DEPTH: usize = 16;

/// Functions that a header defines.
#[derive(Debug, Default)]
pub struct Functions(BTreeMap<String, Function>);

#[derive(Debug)]
struct Function {
    parameters: Vec<String>,
    body: Node,
}

impl Functions {
    /// Reads definitions such as `a(r, k) = 3 * r + k` and `width = 16`.
    ///
    /// # Errors
    /// When one makes no sense, or defines a name again.
    pub fn new<'a>(definitions: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut functions = BTreeMap::new();
        for text in definitions {
            let (head, body) = text
                .split_once('=')
                .with_context(|| format!("expected `NAME(PARAMETERS) = …` in `{text}`"))?;
            let (name, parameters) = head.trim().split_once('(').unwrap_or((head.trim(), ")"));
            let parameters = parameters
                .strip_suffix(')')
                .with_context(|| format!("missing `)` in `{text}`"))?;
            let parameters: Vec<String> = parameters
                .split(',')
                .map(|parameter| parameter.trim().to_owned())
                .filter(|parameter| !parameter.is_empty())
                .collect();
            let body = parse(body, &parameters)?;
            let function = Function { parameters, body };
            if functions.insert(name.to_owned(), function).is_some() {
                bail!("`{name}` is defined twice");
            }
        }
        Ok(Self(functions))
    }

    /// Evaluates `text` for each index below `count`.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn each(&self, text: &str, count: u64) -> Result<Vec<u64>> {
        let node = parse(text, &["i".to_owned()])?;
        (0..count).map(|i| self.value(&node, &[i], DEPTH)).collect()
    }

    fn value(&self, node: &Node, variables: &[u64], depth: usize) -> Result<u64> {
        let value = |node| self.value(node, variables, depth);
        match node {
            Node::Number(number) => Ok(*number),
            Node::Variable(at) => Ok(variables[*at]),
            Node::Binary(operator, both) => apply(operator, value(&both.0)?, value(&both.1)?),
            Node::Sum(terms, term) => {
                let terms = value(terms)?;
                ensure!(terms < 1 << 16, "a sum of {terms} terms");
                let mut inner = [variables, &[0]].concat();
                let mut sum = 0u64;
                for n in 0..terms {
                    inner[variables.len()] = n;
                    sum = sum.wrapping_add(self.value(term, &inner, depth)?);
                }
                Ok(sum)
            }
            Node::Call(name, given) => {
                let given = given.iter().map(value).collect::<Result<Vec<_>>>()?;
                match (name.as_str(), &given[..]) {
                    ("min", &[a, b]) => return Ok(a.cast_signed().min(b.cast_signed()) as u64),
                    ("max", &[a, b]) => return Ok(a.cast_signed().max(b.cast_signed()) as u64),
                    _ => {}
                }
                let Some(function) = self.0.get(name) else {
                    bail!("unknown function `{name}`");
                };
                ensure!(
                    given.len() == function.parameters.len(),
                    "`{name}` takes {} arguments",
                    function.parameters.len()
                );
                ensure!(depth > 0, "`{name}` is defined by itself");
                self.value(&function.body, &given, depth - 1)
            }
        }
    }
}

/// An expression.
#[derive(Debug)]
enum Node {
    Number(u64),
    /// Parameters first, then the variables of the sums around.
    Variable(usize),
    Binary(&'static str, Box<(Node, Node)>),
    /// How many terms, and the term.
    Sum(Box<Node>, Box<Node>),
    Call(String, Vec<Node>),
}

/// Operators by rising precedence; longer spellings first within a level.
const LEVELS: &[&[&str]] = &[
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

fn parse(text: &str, variables: &[String]) -> Result<Node> {
    let mut parser = Parser {
        rest: text.trim(),
        variables: variables.to_vec(),
    };
    let node = parser.binary(0)?;
    if !parser.rest.is_empty() {
        bail!("unexpected `{}` in expression `{text}`", parser.rest);
    }
    Ok(node)
}

struct Parser<'a> {
    rest: &'a str,
    variables: Vec<String>,
}

impl Parser<'_> {
    fn binary(&mut self, level: usize) -> Result<Node> {
        let Some(operators) = LEVELS.get(level) else {
            return self.atom();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|op| self.at(op)) {
            self.skip(operator.len());
            let right = self.binary(level + 1)?;
            left = Node::Binary(operator, Box::new((left, right)));
        }
        Ok(left)
    }

    /// Whether the text goes on with exactly this operator: `<` is not the start of `<<`.
    fn at(&self, operator: &str) -> bool {
        let doubled = matches!(operator, "<" | ">")
            && self.rest[1.min(self.rest.len())..].starts_with(operator);
        self.rest.starts_with(operator) && !doubled
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        if !self.rest.starts_with(sign) {
            bail!("missing `{sign}` before `{}`", self.rest);
        }
        self.skip(sign.len_utf8());
        Ok(())
    }

    fn word(&mut self) -> &str {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.rest = self.rest[end..].trim_start();
        word
    }

    fn atom(&mut self) -> Result<Node> {
        if self.rest.starts_with('(') {
            self.skip(1);
            let node = self.binary(0)?;
            self.expect(')')?;
            return Ok(node);
        }
        let at = self.rest;
        let word = self.word().to_owned();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = match word.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => word.parse(),
            };
            return Ok(Node::Number(
                number.with_context(|| format!("`{word}` is not a number"))?,
            ));
        }
        if let Some(variable) = self.variables.iter().rposition(|name| *name == word) {
            return Ok(Node::Variable(variable));
        }
        if word.is_empty() {
            bail!("expected a number, a name or `(` at `{at}`");
        }
        if !self.rest.starts_with('(') {
            return Ok(Node::Call(word, Vec::new()));
        }
        self.skip(1);
        if word == "sum" {
            return self.sum();
        }
        let mut given = Vec::new();
        while !self.rest.starts_with(')') {
            if !given.is_empty() {
                self.expect(',')?;
            }
            given.push(self.binary(0)?);
        }
        self.skip(1);
        Ok(Node::Call(word, given))
    }

    /// What follows `sum(`.
    fn sum(&mut self) -> Result<Node> {
        let variable = self.word().to_owned();
        self.expect('<')?;
        let terms = self.binary(0)?;
        self.expect(',')?;
        self.variables.push(variable);
        let term = self.binary(0)?;
        self.variables.pop();
        self.expect(')')?;
        Ok(Node::Sum(Box::new(terms), Box::new(term)))
    }
}

fn apply(operator: &str, a: u64, b: u64) -> Result<u64> {
    Ok(match operator {
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => u64::from(a == b),
        "!=" => u64::from(a != b),
        "<=" => u64::from(a <= b),
        ">=" => u64::from(a >= b),
        "<" => u64::from(a < b),
        ">" => u64::from(a > b),
        "<<" => a.checked_shl(u32::try_from(b)?).unwrap_or(0),
        ">>" => a.checked_shr(u32::try_from(b)?).unwrap_or(0),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => bail!("division by zero"),
        "/" => a / b,
        "%" => a % b,
        _ => bail!("unknown operator `{operator}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(text: &str, i: u64) -> Result<u64> {
        let functions = Functions::new(["double(x) = x * 2", "seven = 7", "loop(x) = loop(x)"])?;
        functions.value(&parse(text, &["i".to_owned()])?, &[i], DEPTH)
    }

    #[test]
    fn precedence_and_errors() {
        assert_eq!(eval("1 + i * 2", 5).unwrap(), 11);
        assert_eq!(eval("(i ^ 1) << 4 | 0xf", 2).unwrap(), 0x3f);
        assert_eq!(
            eval("i < 3", 2).unwrap() + eval("i % 4 == 2", 6).unwrap(),
            2
        );
        assert_eq!(eval("0 - 1", 0).unwrap(), u64::MAX);
        for text in ["", "1 +", "(1", "j", "1 / 0", "1 2", "0xg", "sum(k, 1)"] {
            assert!(eval(text, 0).is_err(), "{text}");
        }
    }

    #[test]
    fn functions_and_sums() {
        assert_eq!(eval("double(i + seven)", 3).unwrap(), 20);
        assert_eq!(eval("sum(k < 4, sum(n < k, n * i))", 10).unwrap(), 40);
        assert_eq!(eval("max(0 - 1, 0) + min(0 - 1, 0) + 5", 0).unwrap(), 4);
        for text in [
            "loop(1)",
            "double()",
            "double(1, 2)",
            "triple(1)",
            "double(1",
        ] {
            assert!(eval(text, 0).is_err(), "{text}");
        }
        for text in ["a", "a(x = x", "a(x) = y +"] {
            assert!(Functions::new([text]).is_err(), "{text}");
        }
        assert!(Functions::new(["a = 1", "a(x) = x"]).is_err());
    }
}
