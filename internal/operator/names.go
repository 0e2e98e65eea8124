package operator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func againNumber(params core.Parameters) int64 {
	p, _ := params.Get(core.AgainName)
	n, _ := p.Value.(int64) //nolint:errcheck // absent is 0
	return n
}

func withAgain(params core.Parameters, n int64) (core.Parameters, error) {
	if n == 0 {
		return params, nil
	}
	number := core.Parameter{Name: core.AgainName, Type: core.TypeInt, Value: n, Identifying: true}
	return core.NewParameters(append(params.All(), number)...)
}

// Missing parameters are left to the incrementer.
func optional(specs []core.ParameterSpec) []core.ParameterSpec {
	list := make([]core.ParameterSpec, len(specs))
	for i, spec := range specs {
		spec.Default, spec.Required = nil, false
		list[i] = spec
	}
	return list
}

func matches(params, given core.Parameters) bool {
	for _, p := range given.All() {
		if had, ok := params.Get(p.Name); p.Identifying && (!ok || !same(had, p)) {
			return false
		}
	}
	return true
}

func same(a, b core.Parameter) bool {
	return a.Type == b.Type && a.Text() == b.Text()
}

// redriveName makes a redrive its own instance: EXECUTION.STEP.N. The dot keeps
// it apart from declared parameters.
const redriveName = "run.redrive"

// A step's name may have dots.
func redrivenStep(params core.Parameters) string {
	mark, ok := params.Get(redriveName)
	if !ok {
		return ""
	}
	_, rest, _ := strings.Cut(fmt.Sprint(mark.Value), ".")
	if end := strings.LastIndex(rest, "."); end >= 0 {
		return rest[:end]
	}
	return ""
}

// Given are the parameters without the mark of a redrive, which no caller gives.
func Given(params core.Parameters) []core.Parameter {
	return slices.DeleteFunc(params.All(), func(p core.Parameter) bool { return p.Name == redriveName })
}

// RedriveOf names the execution and the step of a redrive, and its number; 0 means that it is not a redrive.
func RedriveOf(params core.Parameters) (of, step string, n int64) {
	mark, ok := params.Get(redriveName)
	if !ok {
		return "", "", 0
	}
	of, _, _ = strings.Cut(fmt.Sprint(mark.Value), ".")
	return of, redrivenStep(params), redriveNumber(params)
}

func withRedrive(params core.Parameters, of core.JobExecutionID, step string, n int64) (core.Parameters, error) {
	mark := core.Parameter{Name: redriveName, Type: core.TypeString, Identifying: true, Value: fmt.Sprintf("%d.%s.%d", of, step, n)}
	return core.NewParameters(append(params.All(), mark)...)
}

func redriveNumber(params core.Parameters) int64 {
	mark, _ := params.Get(redriveName)
	text := fmt.Sprint(mark.Value)
	n, err := strconv.ParseInt(text[strings.LastIndex(text, ".")+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func identifyingText(params core.Parameters) string {
	var words []string
	for _, p := range params.Identifying().All() {
		words = append(words, p.Name+"="+p.Text())
	}
	return strings.Join(words, " ")
}
