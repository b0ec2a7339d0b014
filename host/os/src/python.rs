//! The lines of Python that the calling thread executes, asked of the interpreter in this process, if there is one.
//!
//! The names are of Python's C API since 3.9. Nothing is linked: a program without an interpreter has none of them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// A line of Python that is being executed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Source file.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// The function it is in.
    pub function: String,
}

type Object = *mut c_void;

/// What is asked of the interpreter.
struct Api {
    is_initialized: unsafe extern "C" fn() -> c_int,
    is_finalizing: Option<unsafe extern "C" fn() -> c_int>,
    check: unsafe extern "C" fn() -> c_int,
    this_thread: unsafe extern "C" fn() -> *mut c_void,
    ensure: unsafe extern "C" fn() -> c_int,
    release: unsafe extern "C" fn(c_int),
    occurred: unsafe extern "C" fn() -> Object,
    clear: unsafe extern "C" fn(),
    frame: unsafe extern "C" fn() -> Object,
    back: unsafe extern "C" fn(Object) -> Object,
    code: unsafe extern "C" fn(Object) -> Object,
    line: unsafe extern "C" fn(Object) -> c_int,
    attribute: unsafe extern "C" fn(Object, *const c_char) -> Object,
    text: unsafe extern "C" fn(Object) -> *const c_char,
    increase: unsafe extern "C" fn(Object),
    decrease: unsafe extern "C" fn(Object),
}

/// Lines that the calling thread executes, innermost first, `most` of them.
///
/// It may wait for the interpreter's lock, so the caller must hold nothing that a thread of Python may wait for.
pub fn lines(most: usize) -> Vec<Line> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    let Some(api) = API.get_or_init(Api::find) else {
        return Vec::new();
    };
    // SAFETY: the functions are those of Python's C API. Those called before the lock is held need none; a thread that
    // Python does not know, and an interpreter that ends, are left alone.
    unsafe {
        let ends = api.is_finalizing.is_some_and(|ends| ends() != 0);
        if (api.is_initialized)() == 0 || ends || (api.this_thread)().is_null() {
            return Vec::new();
        }
        let held = (api.check)() != 0;
        let state = (!held).then(|| (api.ensure)());
        let lines = api.lines(most);
        if let Some(state) = state {
            (api.release)(state);
        }
        lines
    }
}

impl Api {
    fn find() -> Option<Self> {
        Some(Self {
            is_initialized: symbol(c"Py_IsInitialized")?,
            is_finalizing: symbol(c"Py_IsFinalizing").or_else(|| symbol(c"_Py_IsFinalizing")),
            check: symbol(c"PyGILState_Check")?,
            this_thread: symbol(c"PyGILState_GetThisThreadState")?,
            ensure: symbol(c"PyGILState_Ensure")?,
            release: symbol(c"PyGILState_Release")?,
            occurred: symbol(c"PyErr_Occurred")?,
            clear: symbol(c"PyErr_Clear")?,
            frame: symbol(c"PyEval_GetFrame")?,
            back: symbol(c"PyFrame_GetBack")?,
            code: symbol(c"PyFrame_GetCode")?,
            line: symbol(c"PyFrame_GetLineNumber")?,
            attribute: symbol(c"PyObject_GetAttrString")?,
            text: symbol(c"PyUnicode_AsUTF8")?,
            increase: symbol(c"Py_IncRef")?,
            decrease: symbol(c"Py_DecRef")?,
        })
    }

    /// # Safety
    /// The thread holds the interpreter's lock.
    unsafe fn lines(&self, most: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        // SAFETY: the lock is held; every object is one that the interpreter has just given, and is given back once. An
        // exception that is on its way is not touched.
        unsafe {
            if !(self.occurred)().is_null() {
                return lines;
            }
            let mut frame = (self.frame)();
            if !frame.is_null() {
                (self.increase)(frame);
            }
            while !frame.is_null() {
                if lines.len() < most {
                    lines.extend(self.one(frame));
                }
                let back = match lines.len() < most {
                    true => (self.back)(frame),
                    false => std::ptr::null_mut(),
                };
                (self.decrease)(frame);
                frame = back;
            }
        }
        lines
    }

    /// # Safety
    /// The thread holds the interpreter's lock, and `frame` is a frame.
    unsafe fn one(&self, frame: Object) -> Option<Line> {
        // SAFETY: as above.
        unsafe {
            let code = (self.code)(frame);
            let [file, function] =
                [c"co_filename", c"co_name"].map(|name| self.attribute(code, name));
            let line = u32::try_from((self.line)(frame)).ok();
            (self.decrease)(code);
            Some(Line {
                file: file?,
                line: line?,
                function: function?,
            })
        }
    }

    /// # Safety
    /// The thread holds the interpreter's lock, and `of` is an object.
    unsafe fn attribute(&self, of: Object, name: &CStr) -> Option<String> {
        // SAFETY: as above; the text lives as long as its object.
        unsafe {
            let value = (self.attribute)(of, name.as_ptr());
            if value.is_null() {
                (self.clear)();
                return None;
            }
            let text = (self.text)(value);
            let copied = match text.is_null() {
                true => {
                    (self.clear)();
                    None
                }
                false => Some(CStr::from_ptr(text).to_string_lossy().into_owned()),
            };
            (self.decrease)(value);
            copied
        }
    }
}

/// A function of the interpreter.
fn symbol<F>(name: &CStr) -> Option<F> {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: `F` is the type of a function, which is as large as a pointer, and Python's C API says which it is.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_without_an_interpreter_has_no_lines() {
        assert_eq!(super::lines(4), []);
    }
}
