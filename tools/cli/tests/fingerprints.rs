//! Races keep their fingerprints when other code is edited: real sources, compiled by nvcc, edited and compiled again. They
//! also keep them from mode to mode.

use std::collections::BTreeSet;
use std::process::Command;

use crate::workdir::Workdir;

/// Two kernels. In `sum` all threads add to one word (a read and a write race with a write), and write another one; in
/// `shift` a value is read from a neighbour's element of shared memory, without a barrier.
const SOURCE: &str = r#"
__device__ int helper(int x) { return x * 2; }

template <typename T> __global__ void sum(const int *data, T *total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T value = data[i];
    *total += value;
    if (value > 7) total[1] = helper(i);
}

__global__ void shift(int *data)
{
    __shared__ int tile[64];
    int at = threadIdx.x;
    tile[at] = data[at];
    data[at] = tile[(at + 1) % 64];
}

template __global__ void sum<int>(const int *, int *);
"#;

const SUM: &str = "_Z3sumIiEvPKiPT_";
const SHIFT: &str = "_Z5shiftPi";

/// Compiles a source and runs a kernel of it: the fingerprints of all pairs of accesses that race.
fn fingerprints(source: &str, kernel: &str) -> BTreeSet<String> {
    let pairs = pairs(source, kernel, true);
    let prints: BTreeSet<String> = pairs.iter().cloned().collect();
    assert_eq!(
        prints.len(),
        pairs.len(),
        "two races share a fingerprint: {pairs:?}"
    );
    assert!(!prints.is_empty());
    prints
}

/// A place with `k.cu` and, made of it, `k.ptx`.
fn compile(source: &str, lines: bool) -> Workdir {
    let nvcc = toolkit::require("nvcc").unwrap_or_else(|why| panic!("{why}"));
    let workdir = Workdir::new();
    workdir.write("k.cu", source);
    let mut compile = Command::new(nvcc);
    compile.args(["-ptx", "-o"]).arg(workdir.path("k.ptx"));
    compile
        .args(lines.then_some("-lineinfo"))
        .arg(workdir.path("k.cu"));
    let built = compile.output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    workdir
}

fn pairs(source: &str, kernel: &str, lines: bool) -> Vec<String> {
    let workdir = compile(source, lines);
    let launch = "k.ptx --grid 2 --block 64 --arg u32[128]:";
    let mut arguments: Vec<String> = launch.split(' ').map(str::to_owned).collect();
    let words: Vec<String> = (0..128).map(|n| n.to_string()).collect();
    let last = arguments.pop().unwrap() + &words.join(",");
    arguments.push(last);
    if kernel != SHIFT {
        arguments.extend(["--arg", "u32[2]"].map(str::to_owned));
    }
    arguments.extend(["--kernel", kernel, "--format", "json:r.json"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    workdir.tool(&arguments).ends(66, &[]);
    let report = workdir.json("r.json");
    let races = report["races"].as_array().unwrap();
    let related = |race: &serde_json::Value| race["related"].as_array().unwrap().clone();
    let pairs = races
        .iter()
        .flat_map(|race| std::iter::once(race.clone()).chain(related(race)));
    pairs
        .map(|pair| pair["fingerprint"].as_str().unwrap().to_owned())
        .collect()
}

/// The same in a source where a text is another one.
fn edited(kernel: &str, edits: &[(&str, &str)]) -> BTreeSet<String> {
    let mut source = SOURCE.to_owned();
    for (from, to) in edits {
        assert!(source.contains(from), "{from}");
        source = source.replace(from, to);
    }
    fingerprints(&source, kernel)
}

#[test]
fn edits_elsewhere_in_the_file_change_nothing() {
    for kernel in [SUM, SHIFT] {
        let before = fingerprints(SOURCE, kernel);
        let lines = "// a line\n\n__device__ int helper(int x) { return x * 3 + 1; }\n";
        let more = format!(
            "{lines}\n__global__ void other(int *data) {{ data[1] = 3; __syncthreads(); *data += 1; }}\n"
        );
        let helper = "__device__ int helper(int x) { return x * 2; }\n";
        assert_eq!(edited(kernel, &[(helper, &more)]), before);
        // So do blanks and comments of the line itself.
        let blanks = [
            ("    *total += value;", "  *total  += value; // here"),
            ("tile[at] = data[at];", "tile[ at ] = /* own */ data[ at ];"),
        ];
        assert_eq!(edited(kernel, &blanks), before);
    }
}

#[test]
fn renamed_variables_change_nothing() {
    let before = fingerprints(SOURCE, SUM);
    let renamed = [("total", "result"), ("value", "v"), ("data", "input")];
    assert_eq!(edited(SUM, &renamed), before);
    let before = fingerprints(SOURCE, SHIFT);
    assert_eq!(
        edited(
            SHIFT,
            &[
                ("tile", "buffer"),
                ("int at", "int t"),
                ("[at]", "[t]"),
                ("(at ", "(t ")
            ]
        ),
        before
    );
}

#[test]
fn other_template_arguments_change_nothing() {
    let before = fingerprints(SOURCE, SUM);
    let unsigned = [(
        "sum<int>(const int *, int *)",
        "sum<unsigned>(const int *, unsigned *)",
    )];
    let source = SOURCE.replace(unsigned[0].0, unsigned[0].1);
    assert_eq!(fingerprints(&source, "_Z3sumIjEvPKiPT_"), before);
    // Without line information the opcodes stand for the lines.
    let plain = pairs(SOURCE, SUM, false);
    assert_eq!(pairs(&source, "_Z3sumIjEvPKiPT_", false), plain);
    assert_ne!(BTreeSet::from_iter(plain), before);
}

#[test]
fn reordered_kernels_change_nothing() {
    let start = SOURCE.find("__global__ void shift").unwrap();
    let end = SOURCE.find("template __global__").unwrap();
    let shift = &SOURCE[start..end];
    let reordered = SOURCE.replace(shift, "");
    let reordered = reordered.replacen("template <", &format!("{shift}template <"), 1);
    assert!(reordered.find("void shift") < reordered.find("void sum"));
    for kernel in [SUM, SHIFT] {
        assert_eq!(
            fingerprints(&reordered, kernel),
            fingerprints(SOURCE, kernel)
        );
    }
}

#[test]
fn another_race_has_another_fingerprint() {
    let (sum, shift) = (fingerprints(SOURCE, SUM), fingerprints(SOURCE, SHIFT));
    assert!(sum.is_disjoint(&shift));
    // Another statement.
    let other = edited(SUM, &[("*total += value;", "*total -= value;")]);
    assert!(!other.is_subset(&sum) && !sum.is_subset(&other));
    // The same words in another kernel.
    let twin = SOURCE.replace("sum", "add");
    assert!(fingerprints(&twin, "_Z3addIiEvPKiPT_").is_disjoint(&sum));
    // A second line with the same words, and one that only names differ in: the races that are known stay so.
    for more in ["*total += value;", "*total += i;"] {
        let line = format!("*total += value;\n    __syncthreads();\n    {more}");
        let both = edited(SUM, &[("*total += value;", &line)]);
        assert!(
            sum.is_subset(&both) && both.len() > sum.len(),
            "{more}: {sum:?} {both:?}"
        );
    }
}

/// Two blocks add to a word under a lock that they do not acquire, and to another one without, in lines of the same text.
const LOCK: &str = r#"
__global__ void add(int *lock, int *data)
{
    int *other = data + 1;
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        data[0] += 1;
        atomicExch(lock, 0);
        other[0] += 1;
    }
}
"#;

#[test]
fn a_baseline_of_one_mode_holds_in_the_others() {
    let workdir = compile(LOCK, true);
    let launch = "k.ptx --kernel add --grid 2 --block 32 --arg u32[1] --arg u32[2]";
    let run = |mode: &str, more: &str| {
        let words = format!("{launch} {mode} {more}");
        let words: Vec<&str> = words.split_whitespace().collect();
        workdir.tool(&words)
    };
    let ids = |baseline: &str| {
        let baseline = workdir.json(baseline);
        let races = baseline["races"].as_array().unwrap().iter();
        races
            .map(|race| race["id"].to_string())
            .collect::<BTreeSet<_>>()
    };
    let modes = ["", "--mode fast", "--as-gpu"];
    let mut rules = BTreeSet::new();
    for (n, mode) in modes.iter().enumerate() {
        run(mode, &format!("--save {n}.crr")).ends(66, &[]);
        let (of, to) = (format!("{n}.crr"), format!("{n}.json"));
        let create = ["baseline", "create", &of, "-b", &to];
        workdir.tool(&create).ends(0, &[]);
        let races = workdir.json(&of);
        let races = races["races"].as_array().unwrap();
        assert_eq!(ids(&to).len(), 4, "{mode}: {:?}", ids(&to));
        rules.insert(
            races
                .iter()
                .map(|race| race["rule"].to_string())
                .collect::<BTreeSet<_>>(),
        );
    }
    assert!(rules.len() > 1, "all modes name the same rules: {rules:?}");
    for known in 0..modes.len() {
        for (n, mode) in modes.iter().enumerate() {
            let new = run(mode, &format!("--baseline {known}.json --new-only"));
            new.ends(0, &["0 races", "in baseline"]).lacks(&["error["]);
            let [old, new] = [known, n].map(|n| format!("{n}.crr"));
            let diff = workdir.tool(&["diff", &old, &new]);
            diff.ends(0, &[]);
            assert!(
                diff.stdout.contains("SUMMARY: 0 new, 0 gone, "),
                "{}",
                diff.stdout
            );
        }
        let known = format!("{known}.crr");
        let suppress = workdir.tool(&["suppress", &known, "--reason", "known"]);
        workdir.write("known.toml", &suppress.stdout);
        for mode in modes {
            // Modes in which some rules are not judged are incomplete. No suppression is unused in any.
            let code = if mode.is_empty() { 0 } else { 75 };
            let strict = run(mode, "--suppressions known.toml --strict");
            strict.ends(code, &["0 races"]).lacks(&["is unused"]);
        }
    }
}
