package expression

import (
	"maps"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Calendars is the name under which a [Scope] has its own calendars, in addition to the built-in ones.
const Calendars = "calendars()"

const (
	isBusinessDayUsage = "is_business_day(date, 'TARGET'): whether it is a business day in the calendar"
	businessDayUsage   = "business_day(date, n, 'TARGET'): the n-th business day after the date, or before it if n is negative; with 0 the date itself, or the next one"
)

type calendars map[string]*calendar.Calendar

func (c *checker) callBusiness(name string, at int, nodes []ast.Node, known facts) (*typed, error) {
	use := &call{function: function{name: name, usage: isBusinessDayUsage}, at: at}
	kinds := []row.Kind{row.DateKind, row.String}
	if name == "business_day" {
		use.usage, kinds = businessDayUsage, []row.Kind{row.DateKind, row.Int, row.String}
	}
	if len(nodes) != len(kinds) {
		return nil, errorf(at, "wrong arguments of %s: %s", name, use.usage)
	}
	for _, n := range nodes {
		arg, err := c.checkValue(n, known)
		if err != nil {
			return nil, err
		}
		use.args = append(use.args, arg)
	}
	if err := use.wantAll(kinds...); err != nil {
		return nil, err
	}
	days, err := c.calendar(use.args[len(kinds)-1])
	if err != nil {
		return nil, err
	}
	var t *typed
	if name == "business_day" {
		t = use.apply2(row.DateKind, func(day, n row.Value) (row.Value, error) {
			moved, err := days.Add(day.Date(), n.Int())
			if err != nil {
				return row.Value{}, err
			}
			return inYearsOfDates(moved)
		})
	} else {
		t = use.apply1(row.Bool, func(day row.Value) (row.Value, error) {
			open, err := days.IsBusinessDay(day.Date())
			return row.BoolValue(open), err
		})
	}
	return t, fold(t, use.args...)
}

func inYearsOfDates(d row.Date) (row.Value, error) { return addDays(d, 0) }

func (c *checker) calendar(arg *typed) (*calendar.Calendar, error) {
	all := calendar.Stock()
	maps.Copy(all, c.calendars)
	names := sortedNames(all)
	if !arg.literal {
		return nil, errorf(arg.at, "a calendar name is a text in quotes: '%s'", strings.Join(names, "', '"))
	}
	found := all[arg.value.Str()]
	if found == nil {
		e := &Error{Offset: arg.at, Msg: "there is no calendar " + quote(arg.value.Str()), Hint: "declare it under `calendars`; declared: " + strings.Join(names, ", ")}
		if near := nearest.Name(arg.value.Str(), names); near != "" {
			e.Hint = "did you mean '" + near + "'?"
		}
		return nil, e
	}
	return found, nil
}
