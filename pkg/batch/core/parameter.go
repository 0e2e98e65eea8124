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

// The parameter types, with the Go type of their values.
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

// Parameter is one typed value of a launch. Identifying parameters tell one
// instance of a job from another (rule D1).
type Parameter struct {
	Name        string
	Type        ParameterType
	Value       any // of the Go type that belongs to Type
	Identifying bool
	// Former is the value that versions before this one made of the text: they read a local timestamp as UTC, whatever
	// the time zone of the job (rule D5). nil if it is the same value. It is not stored.
	Former any
	// Path is where a path is, absolute: its Value is relative to the folder of the job file
	// where it is inside of it (rule L1a). Empty: the parameter is of another type.
	Path string
}

// ParseParameter reads text as a value of type t. The result's Canonical text
// parses to the same value again. A timestamp without an offset is UTC: see [ParameterSpec.Parse].
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
			v = 0 // of a negative zero (rule D7)
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

// Canonical returns the one text of the value: the form that is stored and
// hashed. It fails if Value is not of the Go type that belongs to Type, and for a value
// without a text that can be read again: NaN, an infinity, a year beyond 0 to 9999.
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
			return v.Reduce().String(), nil // 1.50 and 1.5 are one value
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

// checkYear refuses the years that yyyy-MM-dd has no room for.
func checkYear(t time.Time) error {
	if year := t.Year(); year < 0 || year > 9999 {
		return fmt.Errorf("year %d cannot be stored: allowed are 0 to 9999", year)
	}
	return nil
}

// Text returns the canonical text of a parameter out of Parameters, which have been
// checked.
func (p Parameter) Text() string {
	text, err := p.Canonical()
	if err != nil {
		return fmt.Sprint(p.Value)
	}
	return text
}

// Parameters are the parameters of one launch, by name. It is immutable; the
// zero value is empty.
type Parameters struct{ list []Parameter }

// NewParameters checks names and values; every name may be there once.
func NewParameters(ps ...Parameter) (Parameters, error) {
	list := slices.Clone(ps)
	slices.SortFunc(list, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	for i, p := range list {
		if p.Name == "" {
			return Parameters{}, fmt.Errorf("a parameter has no name")
		}
		if i > 0 && list[i-1].Name == p.Name {
			return Parameters{}, fmt.Errorf("parameter %s is there twice", p.Name)
		}
		if _, err := p.Canonical(); err != nil {
			return Parameters{}, err
		}
	}
	return Parameters{list: list}, nil
}

// All returns the parameters, sorted by name.
func (ps Parameters) All() []Parameter { return slices.Clone(ps.list) }

// Len returns how many there are.
func (ps Parameters) Len() int { return len(ps.list) }

// Identifying returns those that make the instance.
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

// AgainName is the identifying parameter that numbers the repetitions of an instance. A
// declared one cannot have this name, for the dot.
const AgainName = "run.again"

// Key is the identity of the instance among those of its job: the hash of the
// identifying parameters' names, types and canonical values, whatever their
// order (rule D1). It is 64 hex digits.
func (ps Parameters) Key() string { return ps.keyWithout("") }

// BaseKey is the Key of the instance that a repetition repeats, and that of an instance
// which repeats none.
func (ps Parameters) BaseKey() string { return ps.keyWithout(AgainName) }

// FormerKey is the Key that versions before this one gave the instance, which read a local timestamp as UTC; "" if
// it is the same (rule D5).
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
		if err != nil { // NewParameters has checked it
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
	Default     any // of the Go type of Type; nil: none
	Required    bool
	Identifying bool
	// Secret says that no launch has the value among its parameters: it is the secret of this
	// name, which is neither stored nor shown. Such a parameter does not identify.
	Secret   bool
	Pattern  string   // regular expression for string and path
	Enum     []string // canonical texts; empty: any
	Min, Max any      // of the Go type of Type; nil: no limit
	// Zone is the time zone of the job: a timestamp without an offset is a time there; nil is UTC (rule D5).
	Zone *time.Location
	// FormerDefault is the default as Parameter.Former has it; nil if it is Default.
	FormerDefault any
	// Folder is where a relative path begins, and what it is stored relative to: the folder
	// of the job file, absolute. Empty: the job is in no file on the disk, and its paths
	// begin at the working directory.
	Folder string
}

// Parse reads text as a value of the parameter: a timestamp without an offset is a time of the job's time zone.
func (s *ParameterSpec) Parse(text string) (any, error) {
	if s.Type == TypeTimestamp {
		return row.ParseTimestamp(text, s.Zone)
	}
	return ParseParameter(s.Type, text)
}

// Former returns what versions before this one read of the text; nil if it is the same value.
func (s *ParameterSpec) Former(text string, value any) any {
	if s.Type != TypeTimestamp || s.Zone == nil {
		return nil
	}
	if former, err := ParseParameter(s.Type, text); err == nil && former != value {
		return former
	}
	return nil
}
