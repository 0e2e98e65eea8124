// Package picture draws the pictures of pages and reports: the flow of a job, lanes of time, strips of
// runs and curves, as SVG. A picture depends on its data only, so that the same flow is always drawn in
// the same way. Colors, fonts and line styles belong to the style sheet: a shape has a class, such as
// "node failed". Widths are in units of about one pixel.
//
// It imports the standard library only.
package picture
