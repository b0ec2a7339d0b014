//! The way of a program onto a GPU, without one: the simulated driver is the real one, and our runtime library is
//! the program's own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use xtask::apps::{Program, Variant, build::Builder};
use xtask::command::{self, Finished};

const LIMIT: Duration = Duration::from_secs(120);

/// The tool, on a machine where the simulated driver is installed as a real one.
fn tool(builder: &Builder) -> Command {
    let libraries = builder.dist.libraries();
    let mut tool = Command::new(builder.dist.tool());
    tool.env("CUDARUN_CHECK_DRIVER", libraries.join("libcuda.so.1"))
        .env("CUDARUN_CHECK_DRIVER_SIMULATED", "1")
        .env("LD_LIBRARY_PATH", libraries);
    tool
}

fn finish(command: &mut Command) -> Result<Finished> {
    command::finish_within(command, LIMIT)
}

/// Programs print on the GPU's way, without checks, what they print on the simulated device. With checks they run as
/// tests of their own.
pub(crate) fn same_output(builder: &Builder, programs: &[Program], folder: &Path) -> Result<()> {
    let runs = programs.iter().filter(|program| !program.ends_badly());
    let mut count = 0;
    for program in runs {
        let built = builder.build(program, Variant::Clean)?;
        let run = |tool: &mut Command, device: &str| {
            tool.args(["--check", "off", "--device", device, "--"])
                .arg(&built.program)
                .args(&built.arguments)
                .current_dir(folder);
            finish(tool)
        };
        let gpu = run(&mut tool(builder), "gpu")?;
        let simulated = run(&mut Command::new(builder.dist.tool()), "sim")?;
        let name = &program.name;
        ensure!(
            gpu.stderr.contains("with a driver for CUDA 13.0"),
            "{name}: {}",
            gpu.stderr
        );
        ensure!(gpu.stdout == simulated.stdout, "{name}: {}", gpu.stdout);
        // Nothing was to be checked: the exit code is the program's own.
        ensure!(
            (gpu.code, simulated.code) == (0, 0),
            "{name}: {} and {}\n{}",
            gpu.code,
            simulated.code,
            gpu.stderr
        );
        count += 1;
    }
    ensure!(count > 20, "only {count} programs");
    Ok(())
}

/// What `--device` makes of the driver that is there.
pub(crate) fn choice_of_the_device(builder: &Builder, _: &[Program], _: &Path) -> Result<()> {
    let on = |arguments: &[&str], variable: (&str, &str), code: i32, says: &str| -> Result<()> {
        let mut tool = tool(builder);
        tool.args(arguments).env(variable.0, variable.1);
        let finished = finish(&mut tool)?;
        ensure!(
            finished.code == code && finished.stderr.contains(says),
            "{arguments:?} {variable:?}: {}\n{}",
            finished.code,
            finished.stderr
        );
        Ok(())
    };
    let none = ("CUDARUN_CHECK_DRIVER", "/nowhere/libcuda.so.1");
    let broken = ("CUDARUN_SIM_FAIL", "cuInit#1=100");
    let (gpu, sim) = (
        "with a driver for CUDA 13.0",
        "on the simulated sm_90 device",
    );
    let nothing = ("CUDARUN_CHECK_NOTHING", "");
    on(&["true"], nothing, 75, gpu)?;
    on(&["--device", "gpu", "true"], nothing, 75, gpu)?;
    on(&["--device", "sim", "true"], nothing, 75, sim)?;
    // Why not, where nobody asked for the simulated device.
    on(
        &["true"],
        none,
        75,
        "on the simulated sm_90 device, cannot load /nowhere",
    )?;
    on(&["true"], broken, 75, "says CUDA_ERROR_NO_DEVICE")?;
    on(
        &["--device", "gpu", "true"],
        none,
        69,
        "--device gpu: cannot load /nowhere",
    )?;
    on(
        &["--device", "gpu", "true"],
        broken,
        69,
        "says CUDA_ERROR_NO_DEVICE",
    )?;
    let ours = ("CUDARUN_CHECK_DRIVER_SIMULATED", "");
    on(
        &["--device", "gpu", "true"],
        ours,
        69,
        "own driver, not the real one",
    )?;
    // Flags of the simulated device.
    on(&["--seed", "1", "true"], nothing, 75, sim)?;
    on(
        &["--device", "gpu", "--seed", "1", "true"],
        nothing,
        64,
        "--seed",
    )?;
    on(&["--device", "gpu", "x.ptx"], nothing, 69, "a .ptx file")?;
    on(&["doctor"], nothing, 0, "")?;
    let doctor = finish(tool(builder).arg("doctor"))?;
    let found = "for CUDA 13.0, 1 device: ";
    ensure!(doctor.stdout.contains(found), "{}", doctor.stdout);
    Ok(())
}

/// A program with NVIDIA's own runtime inside is started on a GPU, and refused on the simulated device.
pub(crate) fn static_runtime(builder: &Builder, programs: &[Program], folder: &Path) -> Result<()> {
    let Some(source) = programs.iter().find(|program| !program.ends_badly()) else {
        anyhow::bail!("no program under tests/apps");
    };
    let program = folder.join("program");
    let mut nvcc = Command::new(&builder.toolkit.nvcc);
    builder.toolkit.prepare(&mut nvcc);
    nvcc.args(["-arch=sm_90", "-cudart", "static", "-o"])
        .arg(&program)
        .args(source.files());
    command::output(&mut nvcc)?;
    let refused = finish(tool(builder).args(["--device", "sim"]).arg(&program))?;
    ensure!(
        refused.stderr.contains("-cudart shared"),
        "{}",
        refused.stderr
    );
    // A child is not looked into before it starts; the run knows all the same that it was not checked.
    let script = format!("{}; exit 0", program.display());
    let child = finish(tool(builder).args(["--device", "sim", "--", "sh", "-c", &script]))?;
    let said = "/program has NVIDIA's CUDA runtime inside";
    ensure!(
        child.code == 75 && child.stderr.contains(said),
        "{}",
        child.stderr
    );
    // The simulated driver does not serve that runtime, which then says so itself.
    let started = finish(tool(builder).args(["--device", "gpu"]).arg(&program))?;
    ensure!(
        !started.stderr.contains("-cudart shared"),
        "{}",
        started.stderr
    );
    ensure!(
        started.stderr.contains("with a driver for CUDA 13.0"),
        "{}",
        started.stderr
    );
    ensure!(![0, 75].contains(&started.code), "{}", started.stderr);
    // It comes to the driver through us: a driver that can say nothing else says so.
    let gpu = builder.dist.libraries().join("gpu");
    let mut alone = Command::new(&program);
    alone
        .env("LD_PRELOAD", gpu.join("libcuda.so.1"))
        .env(
            "CUDARUN_CHECK_DRIVER",
            builder.dist.libraries().join("libcuda.so.1"),
        )
        .env("CUDARUN_CHECK_DRIVER_SIMULATED", "1")
        .env("CUDARUN_SIM_FAIL", "nonsense");
    let said = finish(&mut alone)?.stderr;
    ensure!(said.contains("CUDARUN_SIM_FAIL: `nonsense`"), "{said}");
    Ok(())
}
