package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Date is a calendar day without zone (rule D5).
type Date = row.Date

// ParameterType is the type of a job parameter (rule D2).
type ParameterType string

// Types and their Go types.
const (
	TypeString    ParameterType = "string"    // string
	TypeInt       ParameterType = "int"       // int64
	TypeFloat     ParameterType = "float"     // float64
	TypeDecimal   ParameterType = "decimal"   // row.Decimal
	TypeBool      ParameterType = "bool"      // bool
	TypeDate      ParameterType = "date"      // Date
	TypeTimestamp ParameterType = "timestamp" // time.Time, UTC, microseconds
	TypeDuration  ParameterType = "duration"  // time.Duration
	TypePath      ParameterType = "path"      // string
)

// ParameterTypes returns all types, in the order of the documentation.
func ParameterTypes() []ParameterType {
	return []ParameterType{TypeString, TypeInt, TypeFloat, TypeDecimal, TypeBool, TypeDate, TypeTimestamp, TypeDuration, TypePath}
}

// Parameter is a launch's typed value. Identifying ones distinguish instances (rule D1).
type Parameter struct {
	Name        string
	Type        ParameterType
	Value       any
	Identifying bool
	// Former is the value as earlier versions read a local timestamp: as UTC (rule D5). nil if the same. Not
	// stored.
	Former any
	// Path is a path's absolute location; Value is relative inside the job file's folder (rule L1a).
	Path string
}

// ParseParameter reads text as type t; its Canonical text parses to the same. A timestamp without offset is
// UTC: see [ParameterSpec.Parse].
func ParseParameter(t ParameterType, text string) (any, error) {
	switch t {
	case TypeString, TypePath:
		return text, nil
	case TypeInt:
		digits := text
		if digits != "" && strings.ContainsRune("+-", rune(digits[0])) {
			digits = digits[1:]
		}
		if len(digits) > 1 && digits[0] == '0' {
			return nil, fmt.Errorf("%q is not an int: a leading zero is not allowed", text)
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not an int", text)
		}
		return v, nil
	case TypeFloat:
		v, err := row.ParseFloat(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a finite float", text)
		}
		if v == 0 {
			v = 0 // removes a negative zero (rule D7)
		}
		return v, nil
	case TypeDecimal:
		v, err := row.ParseDecimal(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a decimal (such as 12.50): %w", text, err)
		}
		return v, nil
	case TypeBool:
		switch text {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is not a bool (true or false)", text)
	case TypeDate:
		return row.ParseDate(text)
	case TypeTimestamp:
		return row.ParseTimestamp(text, nil)
	case TypeDuration:
		v, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration (such as 90s, 1h30m)", text)
		}
		return v, nil
	}
	return nil, fmt.Errorf("parameter type %q is unknown (allowed: %v)", t, ParameterTypes())
}

// Canonical is the text that is stored and hashed. It fails for a wrong Go type, NaN, an infinity, a year
// beyond 0 to 9999.
func (p Parameter) Canonical() (string, error) {
	text, err := canonicalText(p.Type, p.Value)
	if err != nil {
		return "", fmt.Errorf("parameter %s: %w", p.Name, err)
	}
	return text, nil
}

func canonicalText(t ParameterType, value any) (string, error) {
	switch v := value.(type) {
	case string:
		if t == TypeString || t == TypePath {
			return v, nil
		}
	case int64:
		if t == TypeInt {
			return strconv.FormatInt(v, 10), nil
		}
	case float64:
		if t == TypeFloat {
			if v-v != 0 {
				return "", fmt.Errorf("%v cannot be stored: it is not a finite number", v)
			}
			return row.FloatText(v), nil
		}
	case row.Decimal:
		if t == TypeDecimal {
			return v.Reduce().String(), nil
		}
	case bool:
		if t == TypeBool {
			return strconv.FormatBool(v), nil
		}
	case Date:
		if t == TypeDate {
			return v.String(), checkYear(v.Time())
		}
	case time.Time:
		if t == TypeTimestamp {
			return v.UTC().Truncate(time.Microsecond).Format(row.TimestampLayout), checkYear(v.UTC())
		}
	case time.Duration:
		if t == TypeDuration {
			return v.String(), nil
		}
	}
	return "", fmt.Errorf("a %T cannot be stored as %s", value, t)
}

func checkYear(t time.Time) error {
	if year := t.Year(); year < 0 || year > 9999 {
		return fmt.Errorf("year %d cannot be stored: allowed are 0 to 9999", year)
	}
	return nil
}

// Text is Canonical of a checked parameter.
func (p Parameter) Text() string {
	text, err := p.Canonical()
	if err != nil {
		return fmt.Sprint(p.Value)
	}
	return text
}

// Parameters of a launch, by name; immutable, zero is empty.
type Parameters struct{ list []Parameter }

// NewParameters checks names and values; a name occurs once.
func NewParameters(ps ...Parameter) (Parameters, error) {
	list := slices.Clone(ps)
	slices.SortFunc(list, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	for i, p := range list {
		if p.Name == "" {
			return Parameters{}, fmt.Errorf("a parameter has no name")
		}
		if i > 0 && list[i-1].Name == p.Name {
			return Parameters{}, fmt.Errorf("parameter %s is given twice", p.Name)
		}
		if _, err := p.Canonical(); err != nil {
			return Parameters{}, err
		}
	}
	return Parameters{list: list}, nil
}

// All returns them sorted by name.
func (ps Parameters) All() []Parameter { return slices.Clone(ps.list) }

// Len counts them.
func (ps Parameters) Len() int { return len(ps.list) }

// Identifying returns the identifying ones.
func (ps Parameters) Identifying() Parameters {
	return Parameters{list: slices.DeleteFunc(ps.All(), func(p Parameter) bool { return !p.Identifying })}
}

// Get returns the named parameter.
func (ps Parameters) Get(name string) (Parameter, bool) {
	i, ok := slices.BinarySearchFunc(ps.list, name, func(p Parameter, n string) int { return strings.Compare(p.Name, n) })
	if !ok {
		return Parameter{}, false
	}
	return ps.list[i], true
}

// AgainName numbers an instance's repetitions; the dot keeps it from being declared.
const AgainName = "run.again"

// Key identifies the instance within its job: 64 hex digits, the hash of identifying names, types and
// canonical values in any order (rule D1).
func (ps Parameters) Key() string { return ps.keyWithout("") }

// BaseKey is the repeated instance's Key; else Key.
func (ps Parameters) BaseKey() string { return ps.keyWithout(AgainName) }

// FormerKey is the Key when local timestamps were UTC; "" if the same (rule D5).
func (ps Parameters) FormerKey() string {
	changed := false
	former := Parameters{list: ps.All()}
	for i := range former.list {
		if p := &former.list[i]; p.Former != nil && p.Identifying {
			p.Value, changed = p.Former, true
		}
	}
	if !changed {
		return ""
	}
	return former.Key()
}

func (ps Parameters) keyWithout(name string) string {
	h := sha256.New()
	for _, p := range ps.list {
		if !p.Identifying || p.Name == name {
			continue
		}
		text, err := p.Canonical()
		if err != nil { // checked
			panic(fmt.Sprintf("core: parameter %s: %v", p.Name, err))
		}
		for _, part := range []string{p.Name, string(p.Type), text} {
			fmt.Fprintf(h, "%d:%s;", len(part), part)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ParameterSpec declares a parameter of a job (rule D2).
type ParameterSpec struct {
	Name        string
	Type        ParameterType
	Doc         string
	Default     any
	Required    bool
	Identifying bool
	// Secret: no launch has the value, which is neither stored nor shown. It does not identify.
	Secret   bool
	Pattern  string   // for string and path
	Enum     []string // canonical; empty means any
	Min, Max any      // of Type's Go type; nil means no limit
	// Zone is the job's, for timestamps without offset; nil is UTC (rule D5).
	Zone *time.Location
	// FormerDefault is as Parameter.Former; nil if Default.
	FormerDefault any
	// Folder is the base of relative paths, also stored: the job file's, absolute. Empty means the working
	// directory.
	Folder string
}

// Parse reads text; a timestamp without offset is in the job's zone.
func (s *ParameterSpec) Parse(text string) (any, error) {
	if s.Type == TypeTimestamp {
		return row.ParseTimestamp(text, s.Zone)
	}
	return ParseParameter(s.Type, text)
}

// Former is the value earlier versions read; nil if the same.
func (s *ParameterSpec) Former(text string, value any) any {
	if s.Type != TypeTimestamp || s.Zone == nil {
		return nil
	}
	if former, err := ParseParameter(s.Type, text); err == nil && former != value {
		return former
	}
	return nil
}
