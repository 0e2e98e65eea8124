package core_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestTheMostSpecificPatternWinsWhateverTheOrder(t *testing.T) {
	t.Parallel()
	order := []string{"COMPLETED", "F??LED", "?????????", "C*D*", "COMP*", "C?MP*", "C*", "*"}
	transitions := make([]model.Transition, len(order))
	for i, p := range order {
		transitions[len(order)-1-i] = model.Transition{Pattern: p, Target: model.Target{Name: p}}
	}
	for code, want := range map[string]string{"COMPLETED": "COMPLETED", "FAILED": "F??LED", "COMPLETES": "?????????", "CODED": "C*D*", "COMPUTES!!": "COMP*", "CLOSED?": "C*", "X": "*", "": "*"} {
		got, ok := model.Next(transitions, core.StatusFailed, code)
		require.True(t, ok, code)
		if want == "C*" {
			require.Contains(t, []string{"C*", "C*D*"}, got.Name)
			continue
		}
		require.Equal(t, want, got.Name, code)
	}
	_, ok := model.Next(transitions[3:3], core.StatusCompleted, "COMPLETED")
	require.False(t, ok)
}

func TestAPatternMatchesAsItsCharactersSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, code string
		want          bool
	}{
		{"*", "", true}, {"?", "", false}, {"a*b", "ab", true}, {"a*b", "axxb", true}, {"a*b", "axxbc", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"*a*b*", "xaybz", true}, {"**", "x", true}, {"[a]", "a", false}, {"ü?", "üä", true},
	} {
		require.Equal(t, c.want, model.MatchPattern(c.pattern, c.code), "%s against %s", c.pattern, c.code)
	}
}

func parameters() *rapid.Generator[core.Parameter] {
	value := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) core.Parameter { return core.Parameter{Type: core.TypeString, Value: s} }),
		rapid.Map(rapid.Int64(), func(i int64) core.Parameter { return core.Parameter{Type: core.TypeInt, Value: i} }),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) core.Parameter { return core.Parameter{Type: core.TypeFloat, Value: f} }),
		rapid.Map(rapid.Bool(), func(b bool) core.Parameter { return core.Parameter{Type: core.TypeBool, Value: b} }),
		rapid.Map(rapid.Int32Range(-700000, 2900000), func(d int32) core.Parameter {
			return core.Parameter{Type: core.TypeDate, Value: row.Date(d)}
		}),
		rapid.Map(rapid.Int64Range(-6e16, 2e17), func(us int64) core.Parameter {
			return core.Parameter{Type: core.TypeTimestamp, Value: time.UnixMicro(us).UTC()}
		}),
		rapid.Map(rapid.Int64(), func(d int64) core.Parameter { return core.Parameter{Type: core.TypeDuration, Value: time.Duration(d)} }),
	)
	return value
}

func TestParametersSurviveTheirTextAndIdentifyWhateverTheirOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(parameters(), 1, 5).Draw(t, "parameters")
		for i := range list {
			list[i].Name, list[i].Identifying = strings.Repeat("p", i+1), true
			text, err := list[i].Canonical()
			if err != nil {
				t.Fatal(err)
			}
			got, err := core.ParseParameter(list[i].Type, text)
			if err != nil || got != list[i].Value {
				t.Fatalf("%v came back as %v (%v)", list[i], got, err)
			}
		}
		forth, err := core.NewParameters(list...)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(list)
		back, err := core.NewParameters(list...)
		if err != nil {
			t.Fatal(err)
		}
		if forth.Key() != back.Key() {
			t.Fatal("the order changes the key")
		}
		list[0].Identifying = false
		other, err := core.NewParameters(list...)
		if err != nil {
			t.Fatal(err)
		}
		if other.Key() == back.Key() {
			t.Fatal("an identifying parameter less has the same key")
		}
	})
}

func TestAnExecutionContextKeepsTypesAndRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	c := core.NewExecutionContext()
	at := time.Date(2026, 11, 21, 8, 0, 0, 123456000, time.UTC)
	for key, v := range map[string]any{"n": 7, "f": 1.0, "s": "7", "b": true, "d": row.NewDate(2026, 11, 21), "t": at, "w": time.Minute} {
		require.NoError(t, c.Put(key, v))
	}
	require.True(t, c.Changed())
	data, err := c.Encode()
	require.NoError(t, err)
	back, err := core.ParseExecutionContext(data)
	require.NoError(t, err)
	require.False(t, back.Changed())
	for key, want := range map[string]any{"n": int64(7), "f": 1.0, "s": "7", "b": true, "d": row.NewDate(2026, 11, 21), "t": at, "w": time.Minute} {
		got, ok := back.Get(key)
		require.True(t, ok, key)
		require.Equal(t, want, got, key)
	}
	require.NoError(t, back.Put("n", 7))
	require.False(t, back.Changed(), "the same value is no change")
	require.ErrorContains(t, back.Put("x", []int{1}), `key "x": a []int cannot be stored`)
	require.NoError(t, back.Put("big", strings.Repeat("x", core.MaxContextBytes)))
	_, err = back.Encode()
	require.ErrorIs(t, err, core.ErrContextTooLarge)
	require.ErrorContains(t, err, `"big"`)
	_, err = core.ParseExecutionContext([]byte(`{"version": 99}`))
	require.ErrorContains(t, err, "newer")
}

func TestAValueThatCouldNotBeReadAgainIsRefused(t *testing.T) {
	t.Parallel()
	c := core.NewExecutionContext()
	for _, one := range []struct {
		value    any
		contains string
	}{
		{math.NaN(), "NaN cannot be stored"},
		{math.Inf(-1), "-Inf cannot be stored"},
		{row.NewDate(10000, 1, 1), "year 10000 cannot be stored: allowed are 0 to 9999"},
		{row.NewDate(-1, 1, 1), "year -1 cannot be stored"},
		{time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), "year 12026 cannot be stored"},
	} {
		require.ErrorContains(t, c.Put("k", one.value), `execution context: key "k": `+one.contains)
		require.Empty(t, c.Keys())
	}
	_, err := core.NewParameters(core.Parameter{Name: "p", Type: core.TypeFloat, Value: math.NaN()})
	require.ErrorContains(t, err, "parameter p: NaN cannot be stored")
	for _, last := range []any{row.NewDate(9999, 12, 31), row.NewDate(0, 1, 1), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
		require.NoError(t, c.Put("k", last))
		got, ok := c.Get("k")
		require.True(t, ok)
		require.Equal(t, last, got)
	}
}

func TestAStoredValueThatCannotBeReadIsItsText(t *testing.T) {
	t.Parallel()
	c, err := core.ParseExecutionContext([]byte(`{"version":1,"values":{"a":{"t":"float","v":"NaN"},"b":{"t":"int","v":"7"}}}`))
	require.NoError(t, err)
	a, ok := c.Get("a")
	require.True(t, ok)
	require.Equal(t, "NaN", a)
	b, ok := c.Get("b")
	require.True(t, ok)
	require.Equal(t, int64(7), b)
}

func TestAnIntHasNoLeadingZeroWhateverItsSign(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "-0": 0, "+0": 0, "+5": 5, "-5": -5} {
		got, err := core.ParseParameter(core.TypeInt, text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"05", "+05", "-05", "00", "-00", "", "+", "-"} {
		_, err := core.ParseParameter(core.TypeInt, text)
		require.Error(t, err, text)
	}
}

func TestAnOwnerComesBackFromItsText(t *testing.T) {
	t.Parallel()
	o := core.Owner{Host: "h", Boot: "b+1", PID: 42, Start: "99", Nonce: "N"}
	require.Equal(t, o, ports.ParseOwner(o.String()))
	require.Empty(t, core.Owner{}.String())
	require.Equal(t, core.Owner{}, ports.ParseOwner(""))
	require.Equal(t, core.Owner{Nonce: "something else"}, ports.ParseOwner("something else"))
}

// Rule D7.
func TestEqualNumbersAreOneParameter(t *testing.T) {
	t.Parallel()
	key := func(typ core.ParameterType, text string) string {
		value, err := core.ParseParameter(typ, text)
		require.NoError(t, err, text)
		params, err := core.NewParameters(core.Parameter{Name: "n", Type: typ, Value: value, Identifying: true})
		require.NoError(t, err)
		return params.Key()
	}
	require.Equal(t, key(core.TypeInt, "0"), key(core.TypeInt, "-0"))
	require.Equal(t, key(core.TypeInt, "5"), key(core.TypeInt, "+5"))
	for _, same := range [][]string{{"0", "-0", "-0.0", "0.0", "0e7"}, {"5", "5.0", "0.5e1"}, {"1e21", "1000000000000000000000"}} {
		for _, text := range same {
			require.Equal(t, key(core.TypeFloat, same[0]), key(core.TypeFloat, text), text)
		}
	}
	for _, minus := range []any{math.Copysign(0, -1), 0.0} {
		params, err := core.NewParameters(core.Parameter{Name: "n", Type: core.TypeFloat, Value: minus, Identifying: true})
		require.NoError(t, err)
		require.Equal(t, key(core.TypeFloat, "0"), params.Key())
	}
}
