//! The mathematical functions of C in the program itself, so that the loader need not open, map and relocate
//! `libm.so`.
//!
//! That library takes a sixth of the time of a process that copies one small file, which calls none of its
//! functions (docs/design/start-up.md). The compiler makes calls of these functions from methods of `f64` and
//! `f32`; statistics and figures need them. A function that is not here still comes from the shared library.

#[doc(hidden)]
pub use libm as functions;

/// Defines the functions of the C library that the program calls. For a program only: a library would give them
/// to the programs that load it.
#[macro_export]
macro_rules! math_functions {
    () => {
        $crate::math_functions!(f64: acos(x) cos(x) exp(x) exp2(x) expm1(x) log(x) log10(x) log1p(x) log2(x));
        $crate::math_functions!(f64: sin(x) tan(x) atan2(y, x) pow(base, exponent));
        $crate::math_functions!(f32: acosf(x) cosf(x) sinf(x) tanf(x) atan2f(y, x) hypotf(x, y) powf(base, exponent));

        // SAFETY: it is the only function of its name in the program, and has the type that C requires. C
        // requires that the caller passes places to write the results to.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        extern "C" fn sincos(x: f64, sin: &mut f64, cos: &mut f64) {
            (*sin, *cos) = $crate::math::functions::sincos(x);
        }

        // SAFETY: as above.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        extern "C" fn sincosf(x: f32, sin: &mut f32, cos: &mut f32) {
            (*sin, *cos) = $crate::math::functions::sincosf(x);
        }
    };
    ($float:ident: $($name:ident($($argument:ident),+))*) => {
        $(
            // SAFETY: it is the only function of its name in the program, and has the type that C requires.
            #[cfg(all(target_env = "gnu", not(test)))]
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $float),+) -> $float {
                $crate::math::functions::$name($($argument),+)
            }
        )*
    };
}
