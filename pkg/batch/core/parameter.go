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

// Parameter is one typed value of a launch. Identifying parameters distinguish the instances of a job
// (rule D1).
type Parameter struct {
	Name        string
	Type        ParameterType
	Value       any // of the Go type of Type
	Identifying bool
	// Former is the value as versions before this one read it: they took a local timestamp as UTC,
	// whatever the time zone of the job (rule D5). nil if it is the same value. It is not stored.
	Former any
	// Path is the absolute location of a path: its Value is relative to the folder of the job file if
	// it is inside that folder (rule L1a). Empty for other types.
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

// Canonical returns the one text of the value, which is stored and hashed. It fails if Value is not of
// Type's Go type, and for a value without a readable text: NaN, an infinity, a year beyond 0 to 9999.
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

// checkYear refuses years that do not fit in yyyy-MM-dd.
func checkYear(t time.Time) error {
	if year := t.Year(); year < 0 || year > 9999 {
		return fmt.Errorf("year %d cannot be stored: allowed are 0 to 9999", year)
	}
	return nil
}

// Text returns the canonical text of a parameter from Parameters, which are checked.
func (p Parameter) Text() string {
	text, err := p.Canonical()
	if err != nil {
		return fmt.Sprint(p.Value)
	}
	return text
}

// Parameters are the parameters of one launch, by name. It is immutable; the zero value is empty.
type Parameters struct{ list []Parameter }

// NewParameters checks names and values; every name may occur once.
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

// All returns the parameters, sorted by name.
func (ps Parameters) All() []Parameter { return slices.Clone(ps.list) }

// Len returns the number of parameters.
func (ps Parameters) Len() int { return len(ps.list) }

// Identifying returns the parameters that identify the instance.
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

// AgainName is the identifying parameter that numbers the repetitions of an instance. A declared
// parameter cannot have this name because of the dot.
const AgainName = "run.again"

// Key is the identity of the instance within its job: the hash of the identifying parameters' names,
// types and canonical values, in any order (rule D1). It is 64 hex digits.
func (ps Parameters) Key() string { return ps.keyWithout("") }

// BaseKey is the Key of the instance that a repetition repeats; for other instances it equals Key.
func (ps Parameters) BaseKey() string { return ps.keyWithout(AgainName) }

// FormerKey is the instance's Key in versions before this one, which read a local timestamp as UTC; ""
// if it is the same (rule D5).
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
	Default     any // of the Go type of Type; nil means none
	Required    bool
	Identifying bool
	// Secret means that no launch has the value among its parameters: it is the secret of this name,
	// which is neither stored nor shown. Such a parameter does not identify.
	Secret   bool
	Pattern  string   // regular expression for string and path
	Enum     []string // canonical texts; empty means any
	Min, Max any      // of the Go type of Type; nil means no limit
	// Zone is the time zone of the job: a timestamp without an offset is in this zone; nil is UTC (rule
	// D5).
	Zone *time.Location
	// FormerDefault is the default as in Parameter.Former; nil if it is Default.
	FormerDefault any
	// Folder is the base of relative paths, also as stored: the folder of the job file, absolute. Empty
	// means that the job has no file on disk, and its paths begin at the working directory.
	Folder string
}

// Parse reads text as a value of the parameter: a timestamp without an offset is in the job's time
// zone.
func (s *ParameterSpec) Parse(text string) (any, error) {
	if s.Type == TypeTimestamp {
		return row.ParseTimestamp(text, s.Zone)
	}
	return ParseParameter(s.Type, text)
}

// Former returns the value that versions before this one read from the text; nil if it is the same.
func (s *ParameterSpec) Former(text string, value any) any {
	if s.Type != TypeTimestamp || s.Zone == nil {
		return nil
	}
	if former, err := ParseParameter(s.Type, text); err == nil && former != value {
		return former
	}
	return nil
}
