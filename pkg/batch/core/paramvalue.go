package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// String returns the value of a parameter of type string. An absent parameter and one of another type are errors,
// as for the methods that follow.
func (ps Parameters) String(name string) (string, error) { return get[string](ps, name, TypeString) }

// Int returns the value of a parameter of type int.
func (ps Parameters) Int(name string) (int64, error) { return get[int64](ps, name, TypeInt) }

// Float returns the value of a parameter of type float.
func (ps Parameters) Float(name string) (float64, error) { return get[float64](ps, name, TypeFloat) }

// Decimal returns the value of a parameter of type decimal.
func (ps Parameters) Decimal(name string) (row.Decimal, error) {
	return get[row.Decimal](ps, name, TypeDecimal)
}

// Bool returns the value of a parameter of type bool.
func (ps Parameters) Bool(name string) (bool, error) { return get[bool](ps, name, TypeBool) }

// Date returns the value of a parameter of type date.
func (ps Parameters) Date(name string) (Date, error) { return get[Date](ps, name, TypeDate) }

// Timestamp returns the value of a parameter of type timestamp, in UTC.
func (ps Parameters) Timestamp(name string) (time.Time, error) {
	return get[time.Time](ps, name, TypeTimestamp)
}

// Duration returns the value of a parameter of type duration.
func (ps Parameters) Duration(name string) (time.Duration, error) {
	return get[time.Duration](ps, name, TypeDuration)
}

// Path returns the location of a parameter of type path; it is absolute in a launch.
func (ps Parameters) Path(name string) (string, error) {
	value, err := get[string](ps, name, TypePath)
	if p, _ := ps.Get(name); err == nil && p.Path != "" {
		return p.Path, nil
	}
	return value, err
}

func get[T any](ps Parameters, name string, want ParameterType) (value T, err error) {
	p, ok := ps.Get(name)
	switch value, is := p.Value.(T); {
	case !ok:
		given := []string{"none"}
		for i, p := range ps.list {
			given = append(given[:i], p.Name)
		}
		return value, fmt.Errorf("parameter %s is not given (given: %s)", name, strings.Join(given, ", "))
	case p.Type != want || !is:
		return value, fmt.Errorf("parameter %s is of type %s, not %s", name, p.Type, want)
	default:
		return value, nil
	}
}
