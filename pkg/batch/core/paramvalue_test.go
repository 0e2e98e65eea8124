package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestAParameterIsReadByItsType(t *testing.T) {
	t.Parallel()
	var list []core.Parameter
	for typ, text := range map[core.ParameterType]string{
		core.TypeString: "ada", core.TypeInt: "7", core.TypeFloat: "1.5", core.TypeDecimal: "12.50", core.TypeBool: "true",
		core.TypeDate: "2026-11-20", core.TypeTimestamp: "2026-11-20T06:00:00Z", core.TypeDuration: "90s", core.TypePath: "in.csv",
	} {
		value, err := core.ParseParameter(typ, text)
		require.NoError(t, err)
		p := core.Parameter{Name: "a_" + string(typ), Type: typ, Value: value}
		if typ == core.TypePath {
			p.Path = "/data/in.csv"
		}
		list = append(list, p)
	}
	params, err := core.NewParameters(list...)
	require.NoError(t, err)
	amount, err := row.ParseDecimal("12.50")
	require.NoError(t, err)
	reads := map[core.ParameterType]func(name string) (any, error){
		core.TypeString:    func(n string) (any, error) { return params.String(n) },
		core.TypeInt:       func(n string) (any, error) { return params.Int(n) },
		core.TypeFloat:     func(n string) (any, error) { return params.Float(n) },
		core.TypeDecimal:   func(n string) (any, error) { return params.Decimal(n) },
		core.TypeBool:      func(n string) (any, error) { return params.Bool(n) },
		core.TypeDate:      func(n string) (any, error) { return params.Date(n) },
		core.TypeTimestamp: func(n string) (any, error) { return params.Timestamp(n) },
		core.TypeDuration:  func(n string) (any, error) { return params.Duration(n) },
		core.TypePath:      func(n string) (any, error) { return params.Path(n) },
	}
	require.Len(t, reads, len(core.ParameterTypes()))
	want := map[core.ParameterType]any{
		core.TypeString: "ada", core.TypeInt: int64(7), core.TypeFloat: 1.5, core.TypeDecimal: amount, core.TypeBool: true,
		core.TypeDate: row.NewDate(2026, 11, 20), core.TypeTimestamp: time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC),
		core.TypeDuration: 90 * time.Second, core.TypePath: "/data/in.csv",
	}
	for typ, read := range reads {
		for _, p := range list {
			value, err := read(p.Name)
			if p.Type == typ {
				require.NoError(t, err)
				require.Equal(t, want[typ], value)
				continue
			}
			require.EqualError(t, err, "parameter "+p.Name+" is of type "+string(p.Type)+", not "+string(typ))
		}
	}
}

func TestAnAbsentParameterIsAnErrorThatNamesThoseGiven(t *testing.T) {
	t.Parallel()
	_, err := core.Parameters{}.Date("day")
	require.EqualError(t, err, "parameter day is not given (given: none)")
	params, err := core.NewParameters(core.Parameter{Name: "day", Type: core.TypePath, Value: "a"}, core.Parameter{Name: "input", Type: core.TypePath, Value: "in.csv"})
	require.NoError(t, err)
	_, err = params.Date("dya")
	require.EqualError(t, err, "parameter dya is not given (given: day, input)")
	at, err := params.Path("input")
	require.NoError(t, err)
	require.Equal(t, "in.csv", at, "a test has no folder")
}
