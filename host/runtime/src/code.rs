//! The PTX of a module as it is loaded, with or without checks, and what it says about its instructions.
//!
//! Nothing here depends on a process, a device or a launch, so checkers can share it: tests run one module under
//! many schedules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use crate::executed::Accesses;
use crate::instructions::Instructions;
use crate::options::{Options, Prove};
use crate::proofs::Proofs;
use crate::repair::{Known, Pair, Repairs};

/// Number of the first site of a process.
pub const FIRST_SITE: u32 = 1;

/// A module made ready for loading.
pub struct Code {
    /// The text to load.
    text: String,
    /// It was loaded with checks, if there was anything to check.
    with_checks: bool,
    /// It has insertions of ours.
    pub(crate) rewritten: bool,
    /// Kernels, sites and remarks, without the text.
    pub(crate) rewriting: rewrite::Rewritten,
    /// How it was rewritten; none without checks.
    pub(crate) config: Option<rewrite::Config>,
    /// What is wrong with the program's own text, with line and column.
    pub(crate) remarks: Vec<String>,
    /// How long rewriting took.
    pub(crate) seconds: f64,
    /// Lines in the program's own PTX of the sites that the checks name.
    pub(crate) lines: HashMap<u32, u32>,
    /// The program's own text, parsed.
    module: OnceLock<Arc<ptx::ast::Module>>,
    instructions: OnceLock<Arc<Instructions>>,
    /// What is known of its kernels for proofs; none where nothing is proved.
    proofs: Option<Proofs>,
    accesses: OnceLock<Accesses>,
    repairs: Mutex<Option<Repairs>>,
}

impl Code {
    /// Prepares a module as `options` say; its sites are counted from `first_site`.
    pub fn new(text: &str, options: &Options, first_site: u32) -> Self {
        if !options.check {
            return Self::unchecked(text);
        }
        let started = Instant::now();
        let (module, diagnostics) = ptx::parse(text);
        let remarks = diagnostics.iter().filter(|d| !d.unknown).map(|diagnostic| {
            let (line, column) = module.line_column(diagnostic.span.start);
            format!("{line}:{column}: {}", diagnostic.message)
        });
        let config = options.rewriting(first_site);
        // Happens-before decides then, so checks in the kernels would be of no use.
        let bare = options.listens();
        let proofs = (options.prove != Prove::Off).then(|| Proofs::new(&module));
        let mut rewriting = rewrite::rewrite_provable(&module, &config, &|kernel| {
            proofs.as_ref().filter(|_| !bare)?.accesses(&module, kernel)
        });
        let rewritten = std::mem::take(&mut rewriting.text);
        let loaded = match bare {
            true => text.to_owned(),
            false => rewritten,
        };
        let sites = rewriting.sites.iter();
        Self {
            with_checks: !bare,
            rewritten: loaded != text,
            text: loaded,
            lines: sites.map(|site| (site.id, site.ptx_line)).collect(),
            remarks: remarks.collect(),
            seconds: started.elapsed().as_secs_f64(),
            rewriting,
            config: Some(config),
            proofs,
            module: OnceLock::from(Arc::new(module)),
            ..Self::unchecked("")
        }
    }

    /// A module that is loaded as it is.
    pub fn unchecked(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            with_checks: false,
            rewritten: false,
            rewriting: rewrite::Rewritten::default(),
            config: None,
            remarks: Vec::new(),
            seconds: 0.0,
            lines: HashMap::new(),
            module: OnceLock::new(),
            instructions: OnceLock::new(),
            proofs: None,
            accesses: OnceLock::new(),
            repairs: Mutex::default(),
        }
    }

    /// The text to load.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// It carries checks, whether or not they found anything to check.
    pub(crate) fn loads_checks(&self) -> bool {
        self.with_checks
    }

    /// Whether it has other text than the program's own.
    pub fn is_rewritten(&self) -> bool {
        self.rewritten
    }

    /// The program's own text.
    pub fn original(&self) -> String {
        match self.rewritten {
            true => rewrite::erase(&self.text),
            false => self.text.clone(),
        }
    }

    /// What its instructions mean to the happens-before engine.
    pub(crate) fn instructions(&self) -> &Arc<Instructions> {
        self.instructions.get_or_init(|| {
            let shifts = self.shifts();
            let loaded = |at| shifts.rewritten(at);
            Arc::new(Instructions::new(self.module(), loaded, |at| {
                shifts.copied(at)
            }))
        })
    }

    /// The program's own text, parsed.
    pub fn module(&self) -> &Arc<ptx::ast::Module> {
        self.module
            .get_or_init(|| Arc::new(ptx::parse(&self.original()).0))
    }

    /// Its accesses to memory that threads share.
    pub(crate) fn accesses(&self) -> &Accesses {
        self.accesses.get_or_init(|| {
            let sites = &self.rewriting.sites;
            Accesses::new(self.module(), &self.shifts(), sites)
        })
    }

    /// What is known of its kernels for proofs; none where nothing is proved.
    pub(crate) fn proofs(&self) -> Option<&Proofs> {
        self.proofs.as_ref()
    }

    /// Offsets in the program's own text as offsets in the loaded one.
    pub(crate) fn shifts(&self) -> rewrite::edit::Shifts {
        rewrite::edit::Shifts::new(&self.text)
    }

    /// What the text says of pairs of accesses, by their lines in the program's own PTX; those of one launch.
    pub(crate) fn known(&self, pairs: &[Pair]) -> Vec<Known> {
        let mut repairs = self.repairs.lock().unwrap_or_else(PoisonError::into_inner);
        let repairs = repairs.get_or_insert_with(|| Repairs::new(&self.original()));
        repairs.of(pairs)
    }
}
