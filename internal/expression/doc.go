// Package expression is the expression language of job files: the syntax of expr-lang/expr (its parser), with
// static types, null safety and evaluation of our own, straight on row values.
//
// Why not expr's checker and machine: they box every operand, wrap int64 silently, give int where a row has
// int64, cannot compare dates (a named int32), and know nothing of null. Here an expression is checked once
// and becomes a tree of closures over row.Value, so that evaluating it allocates nothing.
//
// # Types
//
// string, int (int64), float (float64), bool, date (row.Date), timestamp (time.Time) and duration. An int
// meets a float as a float if one holds it (always up to 2^53), else it is an error; the two are compared by
// their values. All other conversions are explicit: int(x), float(x), string(x), date(x), timestamp(x),
// duration(x); float(x) is the nearest float.
//
//   - + - * on ints: an int; an overflow is an error, never a wrong number.
//   - / is the float nearest to the quotient, of ints too (7 / 2 is 3.5); a whole
//     quotient of ints that no float holds is an error. div(a, b) is the integer
//     quotient, truncated, and % its remainder, with the sign of a. Division by zero
//     is an error.
//   - a float result that is not finite is an error.
//   - ** and ^ give a float.
//   - + on strings concatenates.
//   - date + int is so many days later, date - date the days between;
//     timestamp ± duration, timestamp - timestamp, duration ± duration.
//   - == != < <= > >= compare two values of one type (bools only with == and !=);
//     strings by bytes.
//   - contains startsWith endsWith matches in, each also after not. matches takes
//     a regular expression of package regexp; in takes [a, b, c] or from..to.
//   - and or not (&& || !), c ? a : b, if c { a } else { b }, let name = a; b.
//
// # Null
//
// A value that may be null must pass ?? or a nil test before it is used:
//
//	item.x ?? 0
//	item.x != nil and item.x > 3
//	item.x == nil or item.x > 3
//	item.x == nil ? 'none' : lower(item.x)
//
// Passed through unchanged (map: {x: item.x}) it stays nullable. and, or, not and the conditional recognize a
// nil test.
//
// # Determinism
//
// Expressions have neither environment nor randomness. today() and now() exist only if the scope holds
// [Today] and [Now] (defaults of parameters).
//
// Programs are immutable: any number of goroutines may evaluate one at a time. A [Frame] belongs to one
// goroutine.
//
// It imports core with its folders, internal/nearest and expr-lang/expr, which nothing else imports.
package expression
