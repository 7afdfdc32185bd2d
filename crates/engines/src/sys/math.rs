//! The mathematical functions of C in the program itself, so that the loader need not open, map and relocate
//! `libm.so`.
//!
//! That library takes a twentieth of the time of a process that copies one small file, which calls none of its
//! functions (docs/design/start-up.md). The compiler makes calls of these functions from methods of `f64` and
//! `f32`; statistics and figures need them. A function that is not here still comes from the shared library.

#[doc(hidden)]
pub use libm as functions;

/// Defines the functions of the C library that the program calls. For a program only: a library would give them
/// to the programs that load it.
#[macro_export]
macro_rules! math_functions {
    () => {
        $crate::math_functions!(f64: acos cos exp exp2 expm1 log log10 log1p log2 sin);
        $crate::math_functions!(f32: acosf cosf sinf);

        // SAFETY: it is the only function of its name in the program, and has the type that C requires.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        extern "C" fn pow(base: f64, exponent: f64) -> f64 {
            $crate::sys::math::functions::pow(base, exponent)
        }

        // SAFETY: as above.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        extern "C" fn powf(base: f32, exponent: f32) -> f32 {
            $crate::sys::math::functions::powf(base, exponent)
        }

        // SAFETY: as above; C requires that the caller passes places to write the results to.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        extern "C" fn sincos(x: f64, sin: &mut f64, cos: &mut f64) {
            (*sin, *cos) = $crate::sys::math::functions::sincos(x);
        }

        // SAFETY: as above.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        extern "C" fn sincosf(x: f32, sin: &mut f32, cos: &mut f32) {
            (*sin, *cos) = $crate::sys::math::functions::sincosf(x);
        }
    };
    ($float:ident: $($name:ident)*) => {
        $(
            // SAFETY: it is the only function of its name in the program, and has the type that C requires.
            #[cfg(all(target_env = "gnu", not(test)))]
            #[unsafe(no_mangle)]
            extern "C" fn $name(x: $float) -> $float {
                $crate::sys::math::functions::$name(x)
            }
        )*
    };
}
