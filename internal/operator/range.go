package operator

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// maxDays bounds the values of a calendar, and of a back-fill by tasks.
const maxDays = 1000

// valuesBetween are the texts of a range of dates or ints, at most so many. The error is a *RequestError.
func valuesBetween(kind core.ParameterType, first, last string, step int64, most int) ([]string, error) {
	from, err := orderOf(kind, first)
	if err != nil {
		return nil, &RequestError{Field: "from", Reason: err.Error()}
	}
	to, err := orderOf(kind, last)
	switch {
	case err != nil:
		return nil, &RequestError{Field: "to", Reason: err.Error()}
	case from > to:
		return nil, &RequestError{Field: "to", Reason: first + " is after " + last}
	case step < 0:
		return nil, &RequestError{Field: "step", Reason: fmt.Sprintf("step %d must be at least 1", step)}
	}
	step = max(step, 1)
	if count := uint64(to) - uint64(from); count/uint64(step) >= uint64(most) {
		return nil, &RequestError{Field: "to", Reason: fmt.Sprintf("the range has more than %d values: divide it", most)}
	}
	values := []string{}
	for at := from; ; at += step {
		if kind == core.TypeDate {
			values = append(values, core.Date(at).String())
		} else {
			values = append(values, strconv.FormatInt(at, 10))
		}
		if to-at < step {
			return values, nil
		}
	}
}

func orderOf(t core.ParameterType, text string) (int64, error) {
	if text == "" {
		return 0, errors.New("a value is needed")
	}
	value, err := core.ParseParameter(t, text)
	if err != nil {
		return 0, err
	}
	if day, ok := value.(core.Date); ok {
		return int64(day), nil
	}
	n, _ := value.(int64) //nolint:errcheck // an int is one
	return n, nil
}
