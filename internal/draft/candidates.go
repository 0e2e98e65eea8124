package draft

import (
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type candidate struct {
	*row.Field
	// order is the order of the numbers in a numeric date; empty for any other type.
	order string
}

const (
	dayFirst   = "day first"
	monthFirst = "month first"
	yearFirst  = "year first"
)

// candidates are the types, best first: exact decimals before floats, dates before times.
// Decimals may have a comma only if commas do not separate fields.
func candidates(withComma bool) []*candidate {
	var all []*candidate
	add := func(order string, f row.Field) {
		f.Name = "value"
		if schema, err := row.NewSchema(f); err == nil { // always valid: the formats are our own
			all = append(all, &candidate{Field: schema.Field(0), order: order})
		}
	}
	add("", row.Field{Kind: row.Bool})
	add("", row.Field{Kind: row.Int})
	add("", row.Field{Kind: row.DecimalKind})
	if withComma {
		add("", row.Field{Kind: row.DecimalKind, DecimalSeparator: ","})
	}
	add("", row.Field{Kind: row.Float})
	add("", row.Field{Kind: row.UUIDKind})
	for _, d := range dateFormats() {
		add(d.order, row.Field{Kind: row.DateKind, Format: d.format})
	}
	for _, d := range timeFormats() {
		add(d.order, row.Field{Kind: row.Timestamp, Format: d.format})
	}
	for _, elem := range []row.Kind{row.Int, row.DecimalKind, row.Float, row.Bool, row.UUIDKind, row.DateKind, row.Timestamp, row.String} {
		add("", row.Field{Kind: row.ListOf(elem)})
	}
	add("", row.Field{Kind: row.JSONKind})
	return all
}

type dateFormat struct{ format, order string }

func dateFormats() []dateFormat {
	all := []dateFormat{
		{"", yearFirst}, {"yyyy/MM/dd", yearFirst}, {"yyyy.MM.dd", yearFirst}, {"yyyy/M/d", yearFirst}, {"dd.MM.yyyy", dayFirst}, {"d.M.yyyy", dayFirst}, {"dd.MM.yy", dayFirst},
		{"MMM d, yyyy", monthFirst}, {"MMM dd, yyyy", monthFirst}, {"MMMM d, yyyy", monthFirst}, {"MMM dd yyyy", monthFirst}, {"MMM d yyyy", monthFirst},
		{"dd MMM yyyy", dayFirst}, {"d MMM yyyy", dayFirst}, {"dd MMMM yyyy", dayFirst}, {"d MMMM yyyy", dayFirst}, {"dd-MMM-yyyy", dayFirst}, {"d-MMM-yyyy", dayFirst}, {"dd-MMM-yy", dayFirst},
	}
	for _, between := range []string{"/", "-"} {
		for _, f := range []dateFormat{
			{"dd/MM/yyyy", dayFirst}, {"MM/dd/yyyy", monthFirst}, {"d/M/yyyy", dayFirst}, {"M/d/yyyy", monthFirst},
			{"dd/MM/yy", dayFirst}, {"MM/dd/yy", monthFirst}, {"yy/MM/dd", yearFirst}, {"d/M/yy", dayFirst}, {"M/d/yy", monthFirst},
		} {
			all = append(all, dateFormat{strings.ReplaceAll(f.format, "/", between), f.order})
		}
	}
	return all
}

func timeFormats() []dateFormat {
	all := []dateFormat{{"", yearFirst}}
	for _, day := range []dateFormat{
		{"yyyy-MM-dd", yearFirst}, {"yyyy/MM/dd", yearFirst}, {"dd.MM.yyyy", dayFirst}, {"d.M.yyyy", dayFirst},
		{"dd/MM/yyyy", dayFirst}, {"MM/dd/yyyy", monthFirst}, {"d/M/yyyy", dayFirst}, {"M/d/yyyy", monthFirst}, {"dd-MM-yyyy", dayFirst}, {"MM-dd-yyyy", monthFirst},
	} {
		for _, time := range []string{" HH:mm:ss", " HH:mm", "THH:mm:ss", "THH:mm", " HH:mm:ss.SSS", " HH:mm:ss.SSSSSS", "THH:mm:ss.SSS", "THH:mm:ss.SSSSSS", " hh:mm:ss a", " hh:mm a", " h:mm:ss a", " h:mm a"} {
			if time[0] == 'T' && day.format != "yyyy-MM-dd" {
				continue
			}
			all = append(all, dateFormat{day.format + time, day.order})
		}
	}
	return append(all, dateFormat{"yyyy-MM-ddTHH:mm:ssXX", yearFirst}, dateFormat{"yyyy-MM-dd HH:mm:ssXX", yearFirst}, dateFormat{"yyyy-MM-dd HH:mm:ss XX", yearFirst})
}

type form int

const (
	inCell form = iota // a text of csv
	inText             // a text of JSON
	bare               // a number or a truth value of JSON
	part               // an array or an object of JSON
)

// returns reports whether the candidate returns the value unchanged; became is the returned text
// otherwise, if the value is of the type.
func (c *candidate) returns(text string, as form) (ok bool, became string) {
	if text == "" || !c.takes(text, as) {
		return false, ""
	}
	if as == part && c.Kind.IsList() {
		v, err := c.ParseArray([]byte(text))
		return err == nil && !c.hasYearZero(v) && c.ReturnsJSON([]byte(text), v), ""
	}
	if as == part {
		return c.Kind == row.JSONKind, ""
	}
	v, err := c.Parse(text)
	if err != nil || v.IsNull() || c.hasYearZero(v) {
		return false, ""
	}
	if c.Returns(text, v) {
		return true, ""
	}
	return false, string(c.AppendText(nil, v))
}

func (c *candidate) hasYearZero(v row.Value) bool {
	elem, isList := c.Kind.Elem()
	switch {
	case c.Kind == row.DateKind, c.Kind == row.Timestamp:
		return strings.HasPrefix(v.String(), "0000-")
	case isList && (elem == row.DateKind || elem == row.Timestamp):
		return strings.Contains(v.String(), `"0000-`)
	}
	return false
}

// takes: 32 digits are a hash rather than a uuid, and JSON has its own types.
func (c *candidate) takes(text string, as form) bool {
	isPart := text[0] == '[' || text[0] == '{'
	switch c.Kind {
	case row.Bool, row.Int, row.Float, row.DecimalKind:
		return as == bare && c.DecimalSeparator == "" || as == inCell
	case row.DateKind, row.Timestamp:
		return as == inText || as == inCell
	case row.UUIDKind:
		return (as == inText || as == inCell) && strings.Contains(text, "-")
	case row.JSONKind:
		return as == part || as == inCell && isPart
	default:
		return c.Kind.IsList() && isPart && (as == part || as == inCell)
	}
}

type number struct {
	digits, fraction int
	zero             bool // the fraction ends with one
}

func plainNumber(text string) (n number, ok bool) {
	rest := strings.TrimPrefix(text, "-")
	whole := 0
	for whole < len(rest) && rest[whole]-'0' <= 9 {
		whole++
	}
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return n, false
	}
	n.digits = whole
	if whole < len(rest) {
		fraction := rest[whole+1:]
		if rest[whole] != '.' || fraction == "" {
			return n, false
		}
		for i := range len(fraction) {
			if fraction[i]-'0' > 9 {
				return n, false
			}
		}
		n.fraction, n.zero = len(fraction), fraction[len(fraction)-1] == '0'
		n.digits += n.fraction
	}
	return n, len(rest) == len(text) || strings.Trim(rest, "0.") != "" // a minus zero would lose its sign
}

// safeDigits is the number of digits that a float and every database's decimals keep (rule D10).
const safeDigits = 15

func byNumbers(c *candidate) bool {
	return c.Kind == row.Int || c.Kind == row.DecimalKind || c.Kind == row.Float
}

func (c *candidate) keeps(n number) bool {
	switch {
	case n.fraction == 0:
		return byNumbers(c)
	case c.Kind == row.DecimalKind:
		return c.DecimalSeparator == ""
	}
	return c.Kind == row.Float && !n.zero
}

func ordersOf(live []*candidate) (formats []string) {
	var orders []string
	for _, c := range live {
		if c.order != "" && !slices.Contains(orders, c.order) {
			orders, formats = append(orders, c.order), append(formats, c.Format)
		}
	}
	return formats
}
