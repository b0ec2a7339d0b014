//! Function bodies: statements, declarations and `.loc`.

use std::collections::{HashMap, HashSet};

use super::{Confused, MAX_DEPTH, Parsed, Parser};
use crate::ast::{Body, Inlined, Linkage, Loc, RegisterDecl, Space, Span, Statement, Type};
use crate::lexer::TokenKind;

/// A place in a source.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Position {
    file: u32,
    line: u32,
    column: u32,
}

/// What is known while a body is read.
#[derive(Default)]
struct Reading {
    statements: Vec<Statement>,
    /// Statement index of the `.loc` in force.
    loc: Option<u32>,
    /// The last `.loc` at each position.
    locs: HashMap<Position, u32>,
    /// Open braces inside the body.
    open: u32,
}

impl Reading {
    /// The `.loc` that one at `position` was inlined into, given the last one at the position of
    /// the call. In recursion a function is inlined into itself at the same position; repeating
    /// such a `.loc` must not look like one more level.
    fn parent_of(&self, position: Position, new: &Inlined) -> Option<u32> {
        let parent = new.parent?;
        let Some(Statement::Loc(last)) = self.statements.get(parent as usize) else {
            return None;
        };
        match &last.inlined {
            Some(inlined)
                if (last.file, last.line, last.column)
                    == (position.file, position.line, position.column)
                    && inlined.function_label == new.function_label
                    && (inlined.file, inlined.line, inlined.column)
                        == (new.file, new.line, new.column) =>
            {
                inlined.parent
            }
            _ => Some(parent),
        }
    }
}

impl Parser<'_> {
    /// The parser stands at the opening brace.
    pub(super) fn body(&mut self) -> Body {
        let start = self.start();
        self.bump();
        let mut reading = Reading::default();
        loop {
            match self.peek() {
                TokenKind::CloseBrace => {
                    let brace = self.bump();
                    if reading.open == 0 {
                        break;
                    }
                    reading.open -= 1;
                    let span = Span {
                        start: brace.start,
                        end: brace.end,
                    };
                    let statement = close(span, reading.open);
                    reading.statements.push(statement);
                }
                TokenKind::End => {
                    self.diagnose_here("function is not closed: expected `}`");
                    break;
                }
                // These never stand in a body, so a brace is missing.
                TokenKind::Dot
                    if matches!(self.dot(), "entry" | "func" | "visible" | "version") =>
                {
                    self.diagnose_here("function is not closed: expected `}`");
                    break;
                }
                _ => {
                    let (first, start) = (self.at, self.start());
                    if self.statement(&mut reading).is_err() {
                        self.skip_statement(first);
                        let span = self.span_from(start);
                        reading.statements.push(Statement::Unknown(span));
                    }
                }
            }
        }
        self.repeated(&reading.statements);
        let span = self.span_from(start);
        Body {
            statements: reading.statements,
            span,
        }
    }

    /// Says which labels have the name of another label or of a variable in the same block.
    fn repeated(&mut self, statements: &[Statement]) {
        // Most of the blocks that nvcc makes have variables and no labels: the names of the latter are few.
        let names = |statement: &Statement| matches!(statement, Statement::Label { .. });
        if !statements.iter().any(names) {
            return;
        }
        let (mut open, mut blocks) = (vec![0u32], 0u32);
        let (mut labels, mut variables) = (HashSet::new(), HashSet::new());
        for statement in statements {
            let block = open.last().copied().unwrap_or_default();
            let (name, taken) = match statement {
                Statement::BlockOpen(_) => {
                    blocks += 1;
                    open.push(blocks);
                    continue;
                }
                Statement::BlockClose(_) => {
                    open.pop();
                    continue;
                }
                Statement::Label { name, .. }
                | Statement::BranchTargets { name, .. }
                | Statement::CallPrototype { name, .. } => {
                    let key = (block, name);
                    (name, !labels.insert(key) || variables.contains(&key))
                }
                Statement::Variable(variable) => {
                    let key = (block, &variable.name);
                    variables.insert(key);
                    (&variable.name, labels.contains(&key))
                }
                Statement::Registers(_)
                | Statement::Instruction(_)
                | Statement::Loc(_)
                | Statement::Pragma(_)
                | Statement::Unknown(_) => continue,
            };
            if taken {
                let message = format!("`{}` is defined twice in a block", super::shorten(name));
                self.diagnose(statement.span(), false, message);
            }
        }
    }

    fn statement(&mut self, reading: &mut Reading) -> Parsed<()> {
        let start = self.start();
        let statement = match self.peek() {
            TokenKind::OpenBrace => {
                self.bump();
                reading.open += 1;
                let span = self.span_from(start);
                match reading.open <= MAX_DEPTH {
                    true => Statement::BlockOpen(span),
                    false => {
                        self.diagnose(span, true, "blocks are nested too deeply");
                        Statement::Unknown(span)
                    }
                }
            }
            TokenKind::Semicolon => {
                self.bump();
                return Ok(());
            }
            TokenKind::Name if self.peek_second() == TokenKind::Colon => self.label()?,
            TokenKind::Name | TokenKind::At => {
                let instruction = self.instruction(reading.loc)?;
                Statement::Instruction(instruction)
            }
            TokenKind::Dot => match self.dot() {
                "loc" => {
                    let loc = self.loc(reading)?;
                    Statement::Loc(loc)
                }
                "reg" => Statement::Registers(self.registers()?),
                "pragma" => {
                    self.pragma()?;
                    Statement::Pragma(self.span_from(start))
                }
                _ => {
                    let linkage = self.linkage();
                    if Space::from_suffix(self.dot()).is_none() && self.dot() != "attribute" {
                        self.diagnose_here("unknown directive: expected a statement");
                        return Err(Confused);
                    }
                    return self.local_variables(reading, linkage, start);
                }
            },
            _ => {
                self.diagnose_here("expected a statement");
                return Err(Confused);
            }
        };
        reading.statements.push(statement);
        Ok(())
    }

    fn local_variables(
        &mut self,
        reading: &mut Reading,
        linkage: Linkage,
        start: u32,
    ) -> Parsed<()> {
        let variables = self.variable_statement(linkage, start)?;
        let statements = variables.into_iter().map(Statement::Variable);
        reading.statements.extend(statements);
        Ok(())
    }

    /// Skips to behind the next semicolon, or to in front of a brace that closes a block. Takes at
    /// least one token counted from `first`.
    fn skip_statement(&mut self, first: usize) {
        let mut depth = 0u32;
        loop {
            match self.peek() {
                TokenKind::End => return,
                TokenKind::Semicolon if depth == 0 => {
                    self.bump();
                    return;
                }
                TokenKind::CloseBrace if depth == 0 => return,
                TokenKind::Dot
                    if self.at > first
                        && matches!(self.dot(), "loc" | "reg" | "entry" | "func" | "visible") =>
                {
                    return;
                }
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    /// `name:`, alone or in front of a list of targets or a prototype.
    fn label(&mut self) -> Parsed<Statement> {
        let start = self.start();
        let name = self.name()?;
        self.expect(TokenKind::Colon)?;
        match self.dot() {
            "branchtargets" | "calltargets" => {
                self.bump();
                let targets = self.names()?;
                self.semicolon()?;
                let span = self.span_from(start);
                Ok(Statement::BranchTargets {
                    name,
                    targets,
                    span,
                })
            }
            "callprototype" => {
                self.bump();
                let returns = match self.peek() {
                    TokenKind::OpenParen => self.parameters()?,
                    _ => Vec::new(),
                };
                self.name()?;
                let params = match self.peek() {
                    TokenKind::OpenParen => self.parameters()?,
                    _ => Vec::new(),
                };
                let mut noreturn = false;
                while self.peek() == TokenKind::Dot {
                    noreturn |= self.dot() == "noreturn";
                    self.bump();
                    self.eat(TokenKind::Int);
                }
                self.semicolon()?;
                let span = self.span_from(start);
                Ok(Statement::CallPrototype {
                    name,
                    returns,
                    params,
                    noreturn,
                    span,
                })
            }
            _ => Ok(Statement::Label {
                name,
                span: self.span_from(start),
            }),
        }
    }

    /// `.reg .v2 .b32 %a, %b<4>;`
    fn registers(&mut self) -> Parsed<RegisterDecl> {
        let start = self.start();
        self.bump();
        let mut vector = 1;
        let mut ty = None;
        while self.peek() == TokenKind::Dot {
            match self.dot() {
                "v2" => vector = 2,
                "v4" => vector = 4,
                dot => match Type::from_suffix(dot) {
                    Some(found) => ty = Some(found),
                    None => {
                        self.diagnose_here("expected the type of a register");
                        return Err(Confused);
                    }
                },
            }
            self.bump();
        }
        let Some(ty) = ty else {
            self.diagnose_here("expected the type of a register");
            return Err(Confused);
        };
        let mut names = Vec::new();
        loop {
            let Ok(name) = self.name() else {
                self.diagnose_here("expected the name of a register");
                return Err(Confused);
            };
            let mut count = None;
            if self.eat(TokenKind::Less) {
                count = Some(self.integer()?);
                self.expect(TokenKind::Greater)?;
            }
            names.push((name, count));
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.semicolon()?;
        Ok(RegisterDecl {
            ty,
            names,
            vector,
            span: self.span_from(start),
        })
    }

    /// `.loc file line column [, function_name label[+offset], inlined_at file line column]`
    fn loc(&mut self, reading: &mut Reading) -> Parsed<Loc> {
        let start = self.start();
        self.bump();
        let place = self.position()?;
        let mut inlined = None;
        if self.eat(TokenKind::Comma) {
            self.keyword("function_name")?;
            let function_label = self.name()?;
            let mut function_offset = 0;
            if self.eat(TokenKind::Plus) {
                function_offset = self.integer()?;
            }
            self.expect(TokenKind::Comma)?;
            self.keyword("inlined_at")?;
            let position = self.position()?;
            let mut new = Inlined {
                function_label,
                function_offset,
                file: position.file,
                line: position.line,
                column: position.column,
                parent: reading.locs.get(&position).copied(),
            };
            new.parent = reading.parent_of(place, &new);
            inlined = Some(new);
        }
        let index = reading.statements.len() as u32;
        reading.loc = Some(index);
        reading.locs.insert(place, index);
        Ok(Loc {
            file: place.file,
            line: place.line,
            column: place.column,
            inlined,
            span: self.span_from(start),
        })
    }

    fn position(&mut self) -> Parsed<Position> {
        Ok(Position {
            file: self.integer()?,
            line: self.integer()?,
            column: self.integer()?,
        })
    }

    fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.peek() == TokenKind::Name && self.word() == word {
            self.bump();
            return Ok(());
        }
        self.diagnose_here(&format!("expected `{word}`"));
        Err(Confused)
    }
}

/// The node for a closing brace: the partner of an opening one that was too deep is no block.
fn close(span: Span, open_after: u32) -> Statement {
    match open_after < MAX_DEPTH {
        true => Statement::BlockClose(span),
        false => Statement::Unknown(span),
    }
}
