//! The PTX of a module as it is loaded, with or without checks, and what it says about its instructions.
//!
//! Nothing here depends on a process, a device or a launch, so checkers can share it: tests run one module under
//! many schedules.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use ptx::Parsed;
use ptx::ast::{Module, Statement};

use crate::executed::Accesses;
use crate::instructions::Instructions;
use crate::options::{Options, Prove, Volatile};
use crate::proofs::Proofs;
use crate::repair::{Known, Pair, Repairs};
use crate::variables::Variables;
use crate::{log, names};

/// What `verify` leaves out.
const VOLATILE: &str = ".volatile";

/// Number of the first site of a process.
pub const FIRST_SITE: u32 = 1;

/// A module made ready for loading.
pub struct Code {
    /// The program's own text.
    own: Parsed,
    /// The text to load where that has insertions of ours.
    rewritten: Option<String>,
    /// That text, parsed.
    loaded: OnceLock<Arc<Module>>,
    /// It was loaded with checks, if there was anything to check.
    with_checks: bool,
    /// Kernels, sites and remarks, without the text.
    pub(crate) rewriting: rewrite::Rewritten,
    /// How it was rewritten; none without checks.
    pub(crate) config: Option<rewrite::Config>,
    /// What is wrong with the program's own text, with line and column.
    pub(crate) remarks: Vec<String>,
    /// How long rewriting took.
    pub(crate) seconds: f64,
    instructions: OnceLock<Arc<Instructions>>,
    variables: OnceLock<Variables>,
    /// What is known of its kernels for proofs; none where nothing is proved.
    proofs: Option<Proofs>,
    accesses: OnceLock<Accesses>,
    repairs: Mutex<Option<Repairs>>,
}

impl Code {
    /// Prepares a module as `options` say; its sites are counted from `first_site`.
    pub fn new(text: impl Into<Parsed>, options: &Options, first_site: u32) -> Self {
        let started = Instant::now();
        let mut own = text.into();
        let volatile = options.verify.map(|verify| verify.volatile);
        if volatile == Some(Volatile::Plain) {
            own = plain(own);
        }
        if !options.check {
            return Self::unchecked(own);
        }
        let module = &*own.module;
        let wrong = own.diagnostics.iter().filter(|d| !d.unknown);
        let remarks = wrong.map(|diagnostic| {
            let (line, column) = module.line_column(diagnostic.span.start);
            format!("{line}:{column}: {}", diagnostic.message)
        });
        let config = options.rewriting(first_site);
        let bare = config.list;
        let proofs = (options.prove != Prove::Off).then(|| Proofs::new(module));
        let mut rewriting = rewrite::rewrite_provable(module, &config, &|kernel| {
            proofs.as_ref().filter(|_| !bare)?.accesses(module, kernel)
        });
        let rewritten = std::mem::take(&mut rewriting.text);
        Self {
            with_checks: !bare,
            rewritten: (!bare && rewritten != own.text()).then_some(rewritten),
            remarks: remarks.collect(),
            seconds: started.elapsed().as_secs_f64(),
            rewriting,
            config: Some(config),
            proofs,
            ..Self::unchecked(own)
        }
    }

    /// A module that is loaded as it is.
    pub fn unchecked(text: impl Into<Parsed>) -> Self {
        Self {
            own: text.into(),
            rewritten: None,
            loaded: OnceLock::new(),
            with_checks: false,
            rewriting: rewrite::Rewritten::default(),
            config: None,
            remarks: Vec::new(),
            seconds: 0.0,
            instructions: OnceLock::new(),
            variables: OnceLock::new(),
            proofs: None,
            accesses: OnceLock::new(),
            repairs: Mutex::default(),
        }
    }

    /// The text to load.
    pub fn text(&self) -> &str {
        self.rewritten.as_deref().unwrap_or(self.own.text())
    }

    /// The text to load, parsed.
    pub fn loaded(&self) -> &Arc<Module> {
        match &self.rewritten {
            Some(text) => self.loaded.get_or_init(|| Arc::new(ptx::parse(text).0)),
            None => &self.own.module,
        }
    }

    /// It carries checks, whether or not they found anything to check.
    pub(crate) fn loads_checks(&self) -> bool {
        self.with_checks
    }

    /// Whether it has other text than the program's own.
    pub fn is_rewritten(&self) -> bool {
        self.rewritten.is_some()
    }

    /// The program's own text.
    pub fn own(&self) -> &Parsed {
        &self.own
    }

    /// A site that the checks name, by its number.
    pub(crate) fn site(&self, id: u32) -> Option<&rewrite::Site> {
        let first = self.config.as_ref()?.first_site;
        self.rewriting.sites.get(id.checked_sub(first)? as usize)
    }

    /// The number in the log of an instruction by its number among the [`instructions`](Self::instructions), if the
    /// checks name it, and nothing else is to be said of it.
    pub(crate) fn named(&self, number: u32) -> Option<u32> {
        let instructions = self.instructions();
        let (offset, recorded) = (instructions.offset(number)?, instructions.site(number)?);
        let sites = &self.rewriting.sites;
        let found = sites.binary_search_by_key(&offset, |site| site.offset);
        let site = names::site(&sites[found.ok()?]);
        let same = log::Site {
            id: site.id,
            ..recorded.clone()
        };
        (site == same).then_some(site.id)
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

    /// Its variables, for people.
    pub(crate) fn variables(&self) -> &Variables {
        self.variables.get_or_init(|| Variables::new(self.module()))
    }

    /// The program's own text, parsed.
    pub fn module(&self) -> &Arc<Module> {
        &self.own.module
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
        rewrite::edit::Shifts::new(self.text())
    }

    /// What the text says of pairs of accesses, by their lines in the program's own PTX; those of one launch.
    pub(crate) fn known(&self, pairs: &[Pair]) -> Vec<Known> {
        self.with_repairs(|repairs| repairs.of(pairs))
    }

    /// Whether barriers of the block stand on all paths between two lines of the program's own PTX, the first one first.
    pub(crate) fn are_parted(&self, lines: [u32; 2]) -> bool {
        self.with_repairs(|repairs| repairs.are_parted(lines))
    }

    fn with_repairs<T>(&self, ask: impl FnOnce(&mut Repairs) -> T) -> T {
        let mut repairs = self.repairs.lock().unwrap_or_else(PoisonError::into_inner);
        ask(repairs.get_or_insert_with(|| Repairs::new(Arc::clone(self.module()))))
    }
}

/// The same text without `.volatile`; everything stays at its place.
fn plain(text: Parsed) -> Parsed {
    let module = &text.module;
    let mut plain = text.text().to_owned();
    for function in module.functions() {
        let statements = function.body.iter().flat_map(|body| &body.statements);
        for statement in statements {
            let Statement::Instruction(instruction) = statement else {
                continue;
            };
            let span = instruction.span;
            let written = module.slice(span);
            if let Some(at) = written.find(VOLATILE)
                && instruction.has("volatile")
            {
                let end = written[at..].find(char::is_whitespace).map(|end| at + end);
                let end = end.unwrap_or(written.len());
                let kept = &written[at + VOLATILE.len()..end];
                let new = format!("{kept}{}", " ".repeat(VOLATILE.len()));
                let start = span.start as usize;
                plain.replace_range(start + at..start + end, &new);
            }
        }
    }
    Parsed::new(&plain)
}
