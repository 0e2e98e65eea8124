package job

import (
	"fmt"
	"math"
	"strconv"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Count returns an incrementer that increases the named int parameter by one,
// from 1. Text may be a number; anything else is a *ports.ParameterError. Others
// take defaults or are inherited (model.Job.Inherit). A caller's value is used
// unchanged.
func Count(name string) model.Incrementer {
	return func(last *core.JobExecution, given core.Parameters) (core.Parameters, error) {
		next := core.Parameter{Name: name, Type: core.TypeInt, Value: int64(1), Identifying: true}
		if before, ok := parameterOf(last, name); ok {
			n, err := count(before.Value)
			if err != nil {
				return core.Parameters{}, &ports.ParameterError{Name: name, Err: err}
			}
			next.Value = n
		}
		return following(given, &next)
	}
}

func count(before any) (int64, error) {
	var n int64
	switch v := before.(type) {
	case int64:
		n = v
	case string:
		var err error
		if n, err = strconv.ParseInt(v, 10, 64); err != nil {
			return 0, fmt.Errorf("%q of the last execution is not an int: give the next value", v)
		}
	default:
		return 0, fmt.Errorf("%v of the last execution is not an int: give the next value", v)
	}
	if n == math.MaxInt64 {
		return 0, fmt.Errorf("%d of the last execution is the greatest int: give another value", n)
	}
	return n + 1, nil
}

// NextDay returns an incrementer that moves the named date parameter to the
// next day; the first is the default or the given value. Text may be a date;
// anything else is a *ports.ParameterError. Others are as with Count.
func NextDay(name string) model.Incrementer {
	return func(last *core.JobExecution, given core.Parameters) (core.Parameters, error) {
		before, ok := parameterOf(last, name)
		if !ok {
			return following(given, nil)
		}
		day, isDate := before.Value.(core.Date)
		if text, isText := before.Value.(string); isText {
			if v, err := core.ParseParameter(core.TypeDate, text); err == nil {
				day, isDate = v.(core.Date)
			}
		}
		if !isDate {
			return core.Parameters{}, &ports.ParameterError{Name: name,
				Err: fmt.Errorf("%v of the last execution is not a date: give the next value", before.Value)}
		}
		return following(given, &core.Parameter{Name: name, Type: core.TypeDate, Value: day.AddDays(1), Identifying: true})
	}
}

func parameterOf(exec *core.JobExecution, name string) (core.Parameter, bool) {
	if exec == nil {
		return core.Parameter{}, false
	}
	return exec.Params.Get(name)
}

func following(given core.Parameters, next *core.Parameter) (core.Parameters, error) {
	list := given.All()
	if next != nil {
		if _, is := given.Get(next.Name); !is {
			list = append(list, *next)
		}
	}
	return core.NewParameters(list...)
}
