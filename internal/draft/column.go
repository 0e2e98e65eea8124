package draft

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

var absentTexts = regexp.MustCompile(`(?i)^(-|--|n/?a|#n/a|null|none|nil|\\n|\?)$`)

type column struct {
	name, from string
	unnamed    bool
	asked      string
	forced     *row.Field
	allText    bool

	live []*candidate // those that returned every value so far

	values, nulls, empty int // without nulls and words; nulls; empty texts
	words                map[string]int
	seen                 [part + 1]int
	objects, absent      int // for JSON: objects, and documents without the key
	longest              int
	nul                  int64 // the line of the first text with a NUL
	isEmpty              bool  // every array is empty

	digits, scale               int
	zeros, fractions, longWhole bool
	groups                      bool // every fraction after a comma has three digits

	ended struct {
		kind, text, became string
		line               int64
	}
	misfits int // values that do not fit a forced type
	misfit  string
}

func (s *Shape) column(name, from string, all []*candidate) *column {
	c := &column{name: name, from: from, live: slices.Clone(all), words: map[string]int{}, scale: -1, groups: true, isEmpty: true, allText: s.options.AllText}
	for _, key := range []string{from, names{}.of(from)} {
		if text, ok := s.options.Types[key]; ok && c.asked == "" {
			c.asked = key
			c.forced, _ = parseType(text) //nolint:errcheck // Infer's caller has checked it
		}
	}
	return c
}

func (c *column) null() { c.nulls++ }

func (c *column) add(text string, as form, line int64) {
	if c.forced != nil && (text != "" || as != inCell) {
		if v, err := c.forced.Parse(text); err != nil || v.IsNull() && !c.forced.Nullable {
			if c.misfits++; c.misfits == 1 {
				c.misfit = strings.Clone(text)
			}
		}
	}
	if n := len(text); n > c.longest {
		c.longest = max(c.longest, utf8.RuneCountInString(text))
	}
	if c.nul == 0 && strings.IndexByte(text, 0) >= 0 {
		c.nul = max(line, 1)
	}
	if as == inCell && text == "" {
		c.empty++
		return
	}
	if as == inCell && len(text) <= len("#N/A") && isWord(text) {
		c.words[strings.Clone(text)]++
		return
	}
	c.seen[as]++
	c.values++
	if len(c.live) == 0 {
		return
	}
	n, isNumber := plainNumber(text)
	if isNumber && as != inText {
		c.number(n)
	}
	if isNumber && n.digits <= safeDigits && as != inText && c.values > 1 {
		c.keepNumbers(n, text, line)
		return
	}
	c.test(text, as, line)
}

func isWord(text string) bool {
	last := text[len(text)-1]
	return (last < '0' || last > '9') && absentTexts.MatchString(text)
}

func (c *column) number(n number) {
	c.digits = max(c.digits, n.digits)
	c.longWhole = c.longWhole || n.fraction == 0 && n.digits > safeDigits
	c.fractions = c.fractions || n.fraction > 0
	c.zeros = c.zeros || n.zero && n.fraction > 1
	switch c.scale {
	case -1, n.fraction:
		c.scale = n.fraction
	default:
		c.scale = -2
	}
}

func (c *column) keepNumbers(n number, text string, line int64) {
	for i, l := range c.live {
		if !l.keeps(n) {
			kept := slices.DeleteFunc(slices.Clone(c.live[i:]), func(l *candidate) bool { return !l.keeps(n) })
			c.left(append(slices.Clone(c.live[:i]), kept...), text, "", line)
			return
		}
	}
}

func (c *column) test(text string, as form, line int64) {
	kept, became := make([]*candidate, 0, len(c.live)), ""
	for _, l := range c.live {
		ok, other := l.returns(text, as)
		if ok {
			kept = append(kept, l)
		} else if became == "" {
			became = other
		}
		if !ok || l.Kind != row.DecimalKind && l.Kind != row.Float {
			continue
		}
		if before, after, found := strings.Cut(text, ","); found && l.DecimalSeparator != "" {
			if n, ok := plainNumber(before + "." + after); ok {
				c.number(n)
				c.groups = c.groups && n.fraction == 3 && n.digits <= 6
			}
		}
		c.fractions = c.fractions || strings.ContainsAny(text, "eE")
	}
	if len(kept) < len(c.live) {
		c.left(kept, text, became, line)
	}
	if as == part || as == inCell && text[0] == '[' {
		c.isEmpty = c.isEmpty && strings.Trim(text, "[] \t\r\n") == "" && text[0] == '['
	}
}

func (c *column) left(kept []*candidate, text, became string, line int64) {
	if len(kept) == 0 {
		c.ended.text, c.ended.became, c.ended.line = strings.Clone(text), became, line
		if c.values > 1 {
			c.ended.kind = c.live[0].Kind.String()
		}
	}
	c.live = kept
}

func (c *column) best() (best *candidate, why string) {
	if c.values == 0 || c.allText {
		return nil, ""
	}
	if formats := ordersOf(c.live); len(formats) > 1 {
		return nil, fmt.Sprintf("days and months are ambiguous: it may be %s; set a type, such as date:%s", strings.Join(formats, " or "), formats[0])
	}
	for _, l := range c.live {
		switch {
		case l.Kind == row.DecimalKind && !c.fractions, l.Kind == row.Float && (c.longWhole || !c.fractions):
			why = "numbers with more digits than an int can hold: they may be identifiers"
		case l.Kind == row.DecimalKind && c.digits > safeDigits:
			why = fmt.Sprintf("numbers of %d digits: SQLite keeps %d of a decimal, PostgreSQL all", c.digits, safeDigits)
		case l.Kind == row.DecimalKind && c.scale < 0 && c.zeros:
			why = "some numbers end with zeros, which SQLite drops: decimal reads them as numbers"
		case l.DecimalSeparator != "" && c.groups:
			why = "a comma in it may be a decimal comma or separate thousands: set decimal_separator or thousands_separator"
		case l.Kind.IsList() && c.isEmpty:
		default:
			return l, ""
		}
	}
	return nil, why
}

func (c *column) result(s *Shape) Field {
	f := c.typed(s)
	if c.nul > 0 {
		nul := fmt.Sprintf("line %d has a NUL, which no table accepts", c.nul)
		f.Note = strings.TrimPrefix(f.Note+"; "+nul, "; ")
	}
	return f
}

func (c *column) typed(s *Shape) Field {
	nulls := c.nulls + c.absent
	f := Field{Name: c.name, Nulls: nulls, Longest: c.longest, Nullable: nulls > 0, Optional: c.absent > 0, Type: row.String.String()}
	if c.from != c.name && !c.unnamed {
		f.From = c.from
	}
	best, why := c.best()
	switch {
	case c.forced != nil:
		c.force(&f)
		return f
	case s.Format == formatCSV:
		c.cells(&f, best, why)
	case c.objects > 0 && !c.allText:
		f.Type = row.JSONKind.String()
	case best != nil:
		f.take(best, c)
	case c.values+c.objects > c.seen[inText]:
		f.Type, f.Note = row.JSONKind.String(), why
		if c.allText {
			f.Type, f.Convert = row.String.String(), true
		} else if c.seen[inText] > 0 && c.seen[bare] > 0 {
			f.Note = "numbers or booleans, and texts: type string with coerce: convert converts all to texts"
		}
	default:
		f.Note = why
		c.explain(&f)
	}
	if c.values+c.objects+len(c.words)+c.empty == 0 {
		f.Nullable, f.Note = true, "no value in the sample: its type is unknown"
	}
	return f
}

func (c *column) cells(f *Field, best *candidate, why string) {
	words := slices.Sorted(maps.Keys(c.words))
	f.Nullable = f.Nullable || c.empty > 0
	switch {
	case best == nil:
		f.Note = why
		c.explain(f)
	case c.empty > 0:
		f.Note = fmt.Sprintf("%s, except for empty quoted texts, which are not null", best.Kind)
	case len(words) > 0: // the file's word would not come back from a null of a table
		if c.nulls > 0 {
			words = append(words, "")
		}
		f.Note = fmt.Sprintf("%s, except for %s: null_if: %s reads %s", best.Kind, quotedList(words), list(words), asNull(len(words)))
	default:
		f.take(best, c)
	}
}

func asNull(n int) string {
	if n == 1 {
		return "it as null"
	}
	return "these as null, and writes all of them as the first"
}

func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}

func (f *Field) take(best *candidate, c *column) {
	f.Type, f.Format, f.DecimalSeparator = best.Kind.String(), best.Format, best.DecimalSeparator
	if best.Kind == row.DecimalKind && c.scale > 0 {
		scale := c.scale
		f.Scale = &scale
	}
}

func (c *column) explain(f *Field) {
	switch e := &c.ended; {
	case f.Note != "" || c.allText || e.text == "":
	case e.became != "":
		f.Note = fmt.Sprintf("line %d: %.40q would become %.40q", e.line, e.text, e.became)
	case e.kind != "":
		f.Note = fmt.Sprintf("not %s: line %d has %.40q", e.kind, e.line, e.text)
	case separated.MatchString(e.text):
		f.Note = "a number with separators? decimal_separator and thousands_separator read it"
	}
}

var separated = regexp.MustCompile(`^-?\d{1,3}([.,' ]\d{3})*[.,]\d+$`)

func (c *column) force(f *Field) {
	t := c.forced
	f.Type, f.Format, f.Scale, f.DecimalSeparator = t.Kind.String(), t.Format, t.Scale, t.DecimalSeparator
	f.Nullable = f.Nullable || t.Nullable || c.empty > 0 && t.Kind != row.String
	f.Misfits, f.Misfit, f.asked = c.misfits, c.misfit, true
	f.Convert = t.Kind == row.String && c.seen[bare]+c.seen[part] > 0
}

func parseType(text string) (*row.Field, error) {
	kind, more, _ := strings.Cut(text, ":")
	kind, nullable := strings.CutSuffix(strings.TrimSpace(kind), " null")
	if rest, ok := strings.CutSuffix(more, " null"); ok {
		more, nullable = rest, true
	}
	f := row.Field{Name: "value", Nullable: nullable}
	var ok bool
	if f.Kind, ok = row.KindByName(kind); !ok {
		return nil, fmt.Errorf("%q is not a type (allowed: %s, list of most of them; optionally followed by null, or a format such as date:dd/MM/yyyy)", text, strings.Join(row.KindNames(), ", "))
	}
	if more != "" && f.Kind == row.DecimalKind {
		scale := 0
		if _, err := fmt.Sscanf(more, "%d", &scale); err != nil {
			return nil, fmt.Errorf("%q: the scale of a decimal is a number, such as decimal:2", text)
		}
		f.Scale = &scale
	} else {
		f.Format = more
	}
	schema, err := row.NewSchema(f)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return schema.Field(0), nil
}

// CheckTypes reports invalid types in Options.Types.
func (o *Options) CheckTypes() error {
	for _, name := range slices.Sorted(maps.Keys(o.Types)) {
		if _, err := parseType(o.Types[name]); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	return nil
}
