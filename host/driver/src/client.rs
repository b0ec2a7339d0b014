//! A program of our own on a driver: loads PTX and launches kernels on the first device.
//!
//! For tests that want a device without a CUDA program around it. The driver is loaded once and stays;
//! the device's primary context stays current in the thread that opened it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use crate::gpu::Gpu;
use crate::steps::Block;
use crate::sys::{
    Api, CUcontext, CUdevice, CUfunction, CUlaunchAttribute, CUlaunchConfig, CUmodule, CUresult,
    device_attribute, function_attribute, jit_option, launch_attribute,
};
use crate::{DeviceError, probe};

/// More dynamic shared memory than this has to be asked for, in bytes.
const FREE_SHARED: u32 = 48 << 10;
/// Room for what the driver's PTX compiler says, in bytes.
const LOG: usize = 4096;

/// The first device of a driver, ready for launches.
#[derive(Debug)]
pub struct Client {
    api: &'static Api,
    context: CUcontext,
    device: CUdevice,
    found: probe::Found,
}

/// A loaded module.
#[derive(Debug)]
pub struct Module(CUmodule);

/// How to launch a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads per CTA.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// All CTAs have to be resident.
    pub cooperative: bool,
}

/// What a driver says of a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// Blocks that fit a multiprocessor at once; none if the driver reports an error.
    pub blocks: Option<u32>,
}

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug)]
pub struct Function(CUfunction);

impl Client {
    /// Loads the driver that the environment names, or the one that is installed, and makes the
    /// first device's primary context current.
    ///
    /// # Errors
    /// Why there is none, or what the driver said.
    pub fn open() -> Result<Client, String> {
        let found = probe::probe()?;
        let api = Api::open_behind().map_err(|error| error.to_string())?;
        // One per process, as the driver itself: it is never unloaded.
        let api: &'static Api = Box::leak(Box::new(api));
        let mut context: CUcontext = std::ptr::null_mut();
        let mut device = 0;
        // SAFETY: there is room for the results; the context is retained until the process ends.
        unsafe {
            api.cuDeviceGet(&mut device, 0)
                .result()
                .and_then(|()| {
                    api.cuDevicePrimaryCtxRetain(&mut context, device)
                        .result()?;
                    api.cuCtxSetCurrent(context).result()
                })
                .map_err(|error| format!("no context on the first device: {error}"))?;
        }
        Ok(Client {
            api,
            context,
            device,
            found,
        })
    }

    /// The driver, and the device's name.
    pub fn found(&self) -> &probe::Found {
        &self.found
    }

    /// Compute capability, major and minor.
    ///
    /// # Errors
    /// The driver's.
    pub fn capability(&self) -> Result<[i32; 2], CUresult> {
        let get = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: there is room for the result.
            unsafe {
                self.api
                    .cuDeviceGetAttribute(&mut value, attribute, self.device)
            }
            .result()
            .map(|()| value)
        };
        Ok([
            get(device_attribute::COMPUTE_CAPABILITY_MAJOR)?,
            get(device_attribute::COMPUTE_CAPABILITY_MINOR)?,
        ])
    }

    /// A number for the context.
    pub fn context(&self) -> u64 {
        self.context.expose_provenance() as u64
    }

    /// Memory of the context.
    ///
    /// # Errors
    /// The driver's.
    pub fn memory(&self) -> Result<Gpu, DeviceError> {
        // SAFETY: the primary context is retained until the process ends.
        unsafe { Gpu::new(self.api, self.context) }
    }

    /// Loads PTX, which the driver compiles.
    ///
    /// # Errors
    /// What the driver and its compiler said.
    pub fn load(&self, ptx: &str) -> Result<Module, String> {
        self.load_with(ptx, None)
    }

    /// The same with a limit of registers per thread.
    ///
    /// # Errors
    /// What the driver and its compiler said.
    pub fn load_with(&self, ptx: &str, registers: Option<u32>) -> Result<Module, String> {
        let text = CString::new(ptx).map_err(|_| "the PTX holds a zero byte".to_owned())?;
        let mut module: CUmodule = std::ptr::null_mut();
        let mut log = [0u8; LOG];
        let mut options = vec![
            jit_option::ERROR_LOG_BUFFER,
            jit_option::ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: Vec<*mut c_void> = vec![
            log.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(LOG - 1),
        ];
        if let Some(limit) = registers {
            options.push(jit_option::MAX_REGISTERS);
            values.push(std::ptr::without_provenance_mut(limit as usize));
        }
        let count = options.len() as c_uint;
        let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
        // SAFETY: the text ends with a zero byte, and the log has the length that is said.
        let loaded = unsafe {
            self.api
                .cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), count, options, values)
        };
        match loaded.result() {
            Ok(()) => Ok(Module(module)),
            Err(error) => {
                let said = CStr::from_bytes_until_nul(&log).unwrap_or_default();
                Err(format!("{error}: {}", said.to_string_lossy().trim()))
            }
        }
    }

    /// Gives a module back. No launch of it may be running.
    pub fn unload(&self, module: Module) {
        // SAFETY: the module is ours and not used again. After a failed launch this fails too.
        let _ = unsafe { self.api.cuModuleUnload(module.0) };
    }

    /// A kernel by its name.
    ///
    /// # Errors
    /// The driver's.
    pub fn function(&self, module: &Module, name: &str) -> Result<Function, CUresult> {
        let name = CString::new(name).map_err(|_| CUresult::NOT_FOUND)?;
        let mut function: CUfunction = std::ptr::null_mut();
        let name: *const c_char = name.as_ptr();
        // SAFETY: the module is loaded, and there is room for the result.
        unsafe { self.api.cuModuleGetFunction(&mut function, module.0, name) }
            .result()
            .map(|()| Function(function))
    }

    /// Address and bytes of a module's variable, if it has it.
    pub fn variable(&self, module: &Module, name: &str) -> Option<(u64, u64)> {
        let name = CString::new(name).ok()?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, and there is room for both results.
        let found = unsafe {
            self.api
                .cuModuleGetGlobal(&mut address, &mut bytes, module.0, name.as_ptr())
        };
        found.result().ok().map(|()| (address, bytes as u64))
    }

    /// Registers and local memory of the kernel, and its occupancy with blocks of `threads` threads.
    pub fn size(&self, function: Function, threads: u32) -> Size {
        let mut blocks: c_int = 0;
        // SAFETY: the function's module is loaded, and there is room for the result.
        let asked = unsafe {
            let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
            self.api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                function.0,
                threads,
                0,
            )
        };
        let blocks = u32::try_from(blocks).ok();
        Size {
            registers: self.attribute(function, function_attribute::NUM_REGS),
            local_bytes: self.attribute(function, function_attribute::LOCAL_SIZE_BYTES),
            blocks: blocks.filter(|_| asked == CUresult::SUCCESS),
        }
    }

    /// Bytes of shared memory that the kernel itself declares.
    pub fn static_shared(&self, function: Function) -> u32 {
        self.attribute(function, function_attribute::SHARED_SIZE_BYTES)
    }

    /// The cluster that the kernel asks for; zeroes where it asks for none.
    pub fn cluster(&self, function: Function) -> [u32; 3] {
        [
            function_attribute::REQUIRED_CLUSTER_WIDTH,
            function_attribute::REQUIRED_CLUSTER_HEIGHT,
            function_attribute::REQUIRED_CLUSTER_DEPTH,
        ]
        .map(|attribute| self.attribute(function, attribute))
    }

    /// An attribute; 0 where the driver does not know it.
    fn attribute(&self, function: Function, attribute: c_int) -> u32 {
        let mut value: c_int = 0;
        // SAFETY: the function's module is loaded, and there is room for the result.
        let known = unsafe {
            self.api
                .cuFuncGetAttribute(&mut value, attribute, function.0)
        };
        match known.result() {
            Ok(()) => u32::try_from(value).unwrap_or(0),
            Err(_) => 0,
        }
    }

    /// Asks for a launch into the default stream; `params` is the block of all parameters.
    ///
    /// # Errors
    /// Why it was refused. How it ends, [`Client::finish`] says.
    pub fn launch(&self, function: Function, shape: &Shape, params: &[u8]) -> Result<(), CUresult> {
        if shape.shared > FREE_SHARED {
            let bytes = c_int::try_from(shape.shared).map_err(|_| CUresult::INVALID_VALUE)?;
            let attribute = function_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function's module is loaded.
            unsafe { self.api.cuFuncSetAttribute(function.0, attribute, bytes) }.result()?;
        }
        let mut block = Block::new(params.to_vec());
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let (none, extra) = (std::ptr::null_mut(), block.extra());
        let stream = std::ptr::null_mut();
        if !shape.cooperative {
            let (api, shared) = (self.api, shape.shared);
            // SAFETY: the driver copies the parameters before it returns, and knows their length.
            return unsafe {
                api.cuLaunchKernel(
                    function.0, gx, gy, gz, bx, by, bz, shared, stream, none, extra,
                )
            }
            .result();
        }
        let mut attribute = CUlaunchAttribute {
            id: launch_attribute::COOPERATIVE,
            value: [1, 0, 0, 0, 0, 0, 0, 0],
            ..CUlaunchAttribute::default()
        };
        let config = CUlaunchConfig {
            grid_dim_x: gx,
            grid_dim_y: gy,
            grid_dim_z: gz,
            block_dim_x: bx,
            block_dim_y: by,
            block_dim_z: bz,
            shared_mem_bytes: shape.shared,
            stream,
            attrs: &mut attribute,
            num_attrs: 1,
        };
        // SAFETY: as above; the attribute lives as long.
        unsafe { self.api.cuLaunchKernelEx(&config, function.0, none, extra) }.result()
    }

    /// Waits for all launches.
    ///
    /// # Errors
    /// How one of them failed. The context cannot be used any more then.
    pub fn finish(&self) -> Result<(), CUresult> {
        // SAFETY: the context is current.
        unsafe { self.api.cuCtxSynchronize() }.result()
    }
}
