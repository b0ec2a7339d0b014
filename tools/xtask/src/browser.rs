//! The HTML report in a real browser.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use report::Report;
use report::formats::Format;
use report::model::{Race, SuppressedBy};
use report::source::Sources;
use report::text::Style;

/// Types into the filter and presses keys, and puts what comes of it into the page.
const PROBE: &str = r##"<script>
const shown = () => [...document.querySelectorAll("article")].filter((of) => of.offsetHeight > 0).length;
const box = document.querySelector("[type=search]");
const said = [shown()];
const type = (text) => { box.value = text; box.dispatchEvent(new Event("input")); said.push(shown()); };
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
type("no such text"); said.push(document.getElementById("nothing").offsetHeight > 0);
type("KERNEL inter-block"); type("");
document.querySelector("input[name=known]").click(); said.push(shown());
for (const key of ["j", "j", "k"]) { press(key); said.push(document.activeElement.className); }
press("/"); said.push(document.activeElement.type);
const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
said.push(wide, getComputedStyle(document.body).backgroundColor);
const probe = document.createElement("output");
probe.textContent = said.join(" ");
document.body.append(probe);
</script>"##;

/// Whether a page with a race and a known one does what it should, at two widths, light and dark.
pub fn run() -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("page.html");
    let page = page()?.replace("</body>", &format!("{PROBE}</body>"));
    std::fs::write(&path, page)?;
    let mut good = true;
    for (scheme, background) in [("1", "rgb(255, 255, 255)"), ("0", "rgb(13, 17, 23)")] {
        for width in ["1280", "500"] {
            let profile = folder.path().join("profile");
            let output = Command::new("chromium")
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
                .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
                .arg(format!("--window-size={width},900"))
                .arg(format!("--user-data-dir={}", profile.display()))
                .arg(&path)
                .output()
                .context("cannot run chromium: install Debian's package chromium")?;
            let dom = String::from_utf8_lossy(&output.stdout).into_owned();
            let said = { dom.split("<output>").nth(1) }.and_then(|rest| rest.split('<').next());
            ensure!(said.is_some(), "the page did not get to its end:\n{dom}");
            let wanted = format!("1 0 true 1 1 2 error known error search false {background}");
            let same = said == Some(&wanted);
            good &= same;
            println!(
                "{} at {width} pixels: {}",
                if same { "ok" } else { "FAILED" },
                said.unwrap_or_default()
            );
        }
    }
    Ok(good)
}

fn page() -> Result<String> {
    let race = Race {
        rule: report::rules::RuleId::InterBlock,
        kernel: report::model::KernelLaunch {
            name: "kernel(int*)".to_owned(),
            grid: [70, 40, 1],
            block: [256, 1, 1],
            ..Default::default()
        },
        ..Race::default()
    };
    let known = Race {
        suppressed_by: Some(SuppressedBy::default()),
        ..race.clone()
    };
    let report = Report {
        races: vec![race, known],
        ..Report::default()
    };
    let sources = Sources::new(Vec::new());
    { Format::Html.render(&report, &sources, Style::default()) }.map_err(anyhow::Error::msg)
}
