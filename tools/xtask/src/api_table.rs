//! `cargo xtask api-table`: which functions of the runtime API and of the driver API the simulated device has.
//!
//! The lists come from the source of the two libraries and from nothing else: from the names they have to export,
//! from where each of these is defined, and from the marks in it. A function that only says `missing`, or that
//! stands in `stubs!`, is missing; one with the mark `ignored` accepts its arguments and does nothing; all others
//! are done, if need be with a `remark`. A function of the runtime that calls a single one of the driver is what that one is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::apps;
use crate::workspace::Workspace;

/// The generated files.
const FILES: [&str; 2] = ["docs/runtime-api.md", "docs/driver-api.md"];

/// What is known of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Status {
    Done,
    /// What is not as on a device.
    Remark(String),
    /// Why it need not do anything.
    Ignored(String),
    Missing,
}

/// Names of programs by the functions that they call.
type Callers = BTreeMap<String, Vec<String>>;

/// Writes the tables; with `check`, only says whether that would change them.
pub fn run(workspace: &Workspace, check: bool) -> Result<bool> {
    let mut current = true;
    for (file, text) in FILES.iter().zip(generate(workspace)?) {
        let path = workspace.root.join(file);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            println!("{file} is current");
        } else if check {
            current = false;
            println!("{file} is stale: run `cargo xtask api-table`");
        } else {
            std::fs::write(&path, text).with_context(|| format!("cannot write {file}"))?;
            println!("{file} written");
        }
    }
    Ok(current)
}

/// The texts of both files, in the order of [`FILES`].
pub fn generate(workspace: &Workspace) -> Result<[String; 2]> {
    let driver = driver(workspace)?;
    let runtime = runtime(workspace, &driver)?;
    let symbols = symbols(workspace)?;
    let all = std::fs::read_to_string(workspace.root.join("host/driver/src/sys/names.rs"))?;
    let list = all.split_once("$callback! {").map_or("", |(_, list)| list);
    let list = list.split_once('}').map_or("", |(list, _)| list);
    // Windows of the table are symbols; what is in no row is not exported.
    let exported: BTreeMap<String, Status> = list
        .split_whitespace()
        .map(|name| {
            let row = symbols.get(name).and_then(|row| driver.get(row));
            (name.to_owned(), row.cloned().unwrap_or(Status::Missing))
        })
        .collect();
    if exported.len() < 600 {
        bail!(
            "the list of the driver's functions has only {} names",
            exported.len()
        );
    }
    let used = callers(workspace)?;
    let runtime = render(
        "runtime",
        "`libcudart.so.12` and `.13`",
        &runtime,
        Some(&used),
    );
    Ok([runtime, render("driver", "`libcuda.so.1`", &exported, None)])
}

/// The programs of `tests/apps` that call functions of the runtime, by function.
fn callers(workspace: &Workspace) -> Result<Callers> {
    let mut found = Callers::new();
    for program in apps::discover(&workspace.root.join("tests/apps"))? {
        if program.ends_badly() {
            continue;
        }
        let mut called = BTreeSet::new();
        let mut per_thread = false;
        for file in program.files() {
            let text = std::fs::read_to_string(&file)?;
            per_thread |= text.contains("--default-stream per-thread");
            let code = text.lines().filter_map(|line| line.split("//").next());
            for line in code {
                // What is called, and what a header makes of a name.
                let cuda = words(line)
                    .into_iter()
                    .filter(|word| word.starts_with("cuda"));
                called.extend(cuda.map(str::to_owned));
            }
        }
        for name in called {
            let names = match per_thread {
                true => vec![format!("{name}_ptsz"), format!("{name}_ptds"), name],
                false => vec![name],
            };
            for name in names {
                found.entry(name).or_default().push(program.name.clone());
            }
        }
    }
    Ok(found)
}

/// Names of programs, two at most.
fn some(programs: &[String]) -> String {
    let mut text = programs
        .iter()
        .take(2)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if programs.len() > 2 {
        let _ = write!(text, " and {} more", programs.len() - 2);
    }
    text
}

/// All text of a folder of sources, without tests.
fn sources(folder: &Path) -> Result<String> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut all = String::new();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
    {
        let text = std::fs::read_to_string(path)?;
        all.push_str(text.split("#[cfg(test)]").next().unwrap_or(""));
    }
    Ok(all)
}

/// The driver's symbols, and the rows of the table that they belong to.
fn symbols(workspace: &Workspace) -> Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(workspace.root.join("host/driver/src/sys/table.rs"))?;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((name, rest)) = line.trim().split_once(": ") else {
            continue;
        };
        let names = rest
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        if let (true, Some((names, _))) = (name.starts_with("cu"), names) {
            for symbol in names.split(',') {
                found.insert(symbol.trim().to_owned(), name.to_owned());
            }
        }
    }
    Ok(found)
}

/// The driver's functions by their rows.
fn driver(workspace: &Workspace) -> Result<BTreeMap<String, Status>> {
    let text = sources(&workspace.root.join("host/shim/cuda/src"))?;
    let words = words(&text);
    let rows: BTreeSet<String> = symbols(workspace)?.into_values().collect();
    let mut found = BTreeMap::new();
    for row in rows {
        let status = match body(&text, &row) {
            Some(body) => status(body),
            // Families of functions are made by macros.
            None if words.contains(row.as_str()) => Status::Done,
            None => bail!("{row} is in the table of entry points and defined nowhere"),
        };
        found.insert(row, status);
    }
    Ok(found)
}

/// The runtime's functions.
fn runtime(
    workspace: &Workspace,
    driver: &BTreeMap<String, Status>,
) -> Result<BTreeMap<String, Status>> {
    let folder = workspace.root.join("host/shim/cudart");
    let text = sources(&folder.join("src"))?;
    let names = std::fs::read_to_string(folder.join("names.txt"))?;
    let stubs = text
        .rsplit_once("\nstubs! {")
        .and_then(|(_, rest)| rest.split_once('}'));
    let stubs: BTreeSet<&str> = stubs
        .map_or("", |(list, _)| list)
        .split_whitespace()
        .collect();
    let mut found = BTreeMap::new();
    for name in names.lines() {
        let status = if stubs.contains(name) {
            Status::Missing
        } else {
            let of = alias(&text, name).unwrap_or(name);
            let Some(body) = body(&text, of) else {
                bail!("{name} has to be exported and is defined nowhere");
            };
            match (status(body), calls(body).as_slice()) {
                (Status::Done, [only]) => driver.get(*only).cloned().unwrap_or(Status::Done),
                (status, _) => status,
            }
        };
        found.insert(name.to_owned(), status);
    }
    Ok(found)
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect()
}

/// The function that `name` is another name of.
fn alias<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let at = text.find(&format!(") as {name} {{"))?;
    let (_, start) = text.get(..at)?.rsplit_once("    fn ")?;
    start.split_once('(').map(|(function, _)| function)
}

/// The body of a function, by its braces.
fn body<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let from = text.find(&format!("fn {name}("))?;
    let rest = text.get(from..)?;
    let open = rest.find('{')?;
    let mut depth = 0u32;
    for (at, byte) in rest.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return rest.get(open + 1..at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn status(body: &str) -> Status {
    let body = body.trim();
    let mark = |start: &str| {
        let (_, rest) = body.split_once(start)?;
        rest.split_once('"').map(|(text, _)| text.to_owned())
    };
    if let Some(text) = mark("remark(\"") {
        return Status::Remark(text);
    }
    match mark("ignored(\"") {
        Some(why) => Status::Ignored(why),
        None if body.starts_with("Err(missing(") && !body.contains(';') => Status::Missing,
        None => Status::Done,
    }
}

/// The functions of the driver that a body calls, each once.
fn calls(body: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for rest in body.split(".cu").skip(1) {
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        // The split took the first two letters away.
        let start = rest.as_ptr() as usize - body.as_ptr() as usize - 2;
        if let Some(name) = body.get(start..start + 2 + end)
            && !found.contains(&name)
        {
            found.push(name);
        }
    }
    found
}

/// The page; `used` says which programs call a function.
fn render(
    what: &str,
    library: &str,
    functions: &BTreeMap<String, Status>,
    used: Option<&Callers>,
) -> String {
    let count = |pick: fn(&Status) -> bool| functions.values().filter(|s| pick(s)).count();
    let done = count(|status| matches!(status, Status::Done | Status::Remark(_)));
    let missing = count(|status| *status == Status::Missing);
    let mut text = String::from("<!-- Generated by `cargo xtask api-table`. -->\n\n");
    // Writing to a text cannot fail.
    let _ = write!(
        text,
        "# The {what} API on the simulated device\n\n\
         What our {library} does for each function that NVIDIA's exports: {} functions, {done} done, {} accepted and \
         ignored, {missing} missing.\n\
         A missing one returns \"not supported\" and says so on standard error, or is not exported at all.\n\
         `_ptsz` and `_ptds` are the names that programs with a per-thread default stream import.\n",
        functions.len(),
        functions.len() - done - missing,
    );
    text.push_str(match used {
        Some(_) => {
            "The last column names programs of `tests/apps` that call a function, two at most; C++ has templates \
             around some.\n\n\
             | function | | called by |\n|---|---|---|\n"
        }
        None => "\n| function | |\n|---|---|\n",
    });
    for (name, status) in functions {
        let status = match status {
            Status::Done => "done".to_owned(),
            Status::Remark(what) => format!("done; {what}"),
            Status::Ignored(why) => format!("accepted and ignored: {why}"),
            Status::Missing => "**missing**".to_owned(),
        };
        let _ = match used {
            Some(used) => {
                let programs = used.get(name).map_or(&[][..], Vec::as_slice);
                writeln!(text, "| `{name}` | {status} | {} |", some(programs))
            }
            None => writeln!(text, "| `{name}` | {status} |"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_function_does_is_read_from_its_body() {
        let text = "fn a(x: u8) -> Answer {\n Err(missing(\"a\"))\n}\nfn b() {\n ignored(\"why\");\n if x { y }\n}\n\
                    fn e() {\n remark(\"so\");\n y\n}\n\
                    fn c() {\n if x { return Err(missing(\"c\")); }\n z.cuOne(1)?; check(z.cuTwo(z.cuOne(2)))\n}";
        let of = |name| body(text, name).map(status);
        assert_eq!(of("a"), Some(Status::Missing));
        assert_eq!(of("b"), Some(Status::Ignored("why".to_owned())));
        assert_eq!(of("c"), Some(Status::Done));
        assert_eq!(of("e"), Some(Status::Remark("so".to_owned())));
        assert_eq!(of("d"), None);
        assert_eq!(calls(body(text, "c").unwrap_or("")), ["cuOne", "cuTwo"]);
        let aliased = "entry! {\n    fn one(x: u8) as one_ptsz {\n    }\n    fn two() as two_ptsz {\n    }\n}";
        assert_eq!(alias(aliased, "two_ptsz"), Some("two"));
        assert_eq!(alias(aliased, "two"), None);
    }
}
