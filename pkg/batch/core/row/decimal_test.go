//test:plain

package row_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func decimals() *rapid.Generator[row.Decimal] {
	text := rapid.Custom(func(t *rapid.T) string {
		whole := rapid.StringMatching(`-?[0-9]{1,30}`).Draw(t, "whole")
		if fraction := rapid.StringMatching(`[0-9]{0,30}`).Draw(t, "fraction"); fraction != "" {
			return whole + "." + fraction
		}
		return whole
	})
	parse := func(text string) row.Decimal {
		d, err := row.ParseDecimal(text)
		if err != nil {
			panic(err)
		}
		return d
	}
	return rapid.OneOf(rapid.Map(text, parse), rapid.Custom(func(t *rapid.T) row.Decimal {
		d, err := row.NewDecimal(rapid.Int64().Draw(t, "coefficient"), rapid.IntRange(0, 25).Draw(t, "scale"))
		require.NoError(t, err)
		return d
	}), rapid.Map(rapid.SampledFrom([]string{"0", "0.00", "-0.5", "0.5", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "922337203685477580.7", "1.005", "2.5", "-2.5"}), parse))
}

func rat(d row.Decimal) *big.Rat {
	r, ok := new(big.Rat).SetString(d.String())
	if !ok {
		panic(d.String())
	}
	return r
}

// Rule D10.
func TestDecimalsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := decimals().Draw(t, "a"), decimals().Draw(t, "b")
		x, y := rat(a), rat(b)
		require.Equal(t, x.Cmp(y), a.Cmp(b))
		require.Equal(t, x.Cmp(y) == 0, a.Equal(b))
		require.Equal(t, a.Equal(b), a.Reduce() == b.Reduce())
		require.Equal(t, a.Equal(b), row.DecimalValue(a).Equal(row.DecimalValue(b)))
		require.Equal(t, x.Sign(), a.Sign())
		for want, calc := range map[*big.Rat]func() (row.Decimal, error){
			new(big.Rat).Add(x, y): func() (row.Decimal, error) { return a.Add(b) },
			new(big.Rat).Sub(x, y): func() (row.Decimal, error) { return a.Sub(b) },
			new(big.Rat).Mul(x, y): func() (row.Decimal, error) { return a.Mul(b) },
			new(big.Rat).Neg(x):    func() (row.Decimal, error) { return a.Neg(), nil },
			new(big.Rat).Abs(x):    func() (row.Decimal, error) { return a.Abs(), nil },
			x:                      func() (row.Decimal, error) { return row.ParseDecimal(a.String()) },
		} {
			got, err := calc()
			require.NoError(t, err)
			require.Zero(t, want.Cmp(rat(got)), "%s, not %s", want, got)
		}
		back, err := row.ParseDecimal(a.String())
		require.NoError(t, err)
		require.Equal(t, a, back, "with its scale")
		text, err := json.Marshal(a)
		require.NoError(t, err)
		require.Equal(t, a.String(), string(text))
		whole, fits, isWhole := a.Int()
		require.Equal(t, x.IsInt(), isWhole || !fits && x.IsInt())
		if fits {
			require.Zero(t, new(big.Int).Quo(x.Num(), x.Denom()).Cmp(big.NewInt(whole)))
		}
		near, ok := a.Float()
		want, _ := x.Float64()
		require.True(t, ok)
		require.Equal(t, want, near+0)
	})
}

func TestQuotientsAreRoundedByTheirMode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := decimals().Draw(t, "a"), decimals().Filter(func(d row.Decimal) bool { return d.Sign() != 0 }).Draw(t, "b")
		scale := rapid.IntRange(0, 12).Draw(t, "scale")
		name := rapid.SampledFrom(row.RoundingNames()).Draw(t, "mode")
		mode, ok := row.RoundingByName(name)
		require.True(t, ok)
		got, err := a.Quo(b, scale, mode)
		require.NoError(t, err)
		require.Equal(t, scale, got.Scale())
		require.Zero(t, rounded(new(big.Rat).Quo(rat(a), rat(b)), scale, name).Cmp(rat(got)), "%s / %s = %s", a, b, got)
		cut, err := a.Round(scale, mode)
		require.NoError(t, err)
		require.Equal(t, scale, cut.Scale())
		require.Zero(t, rounded(rat(a), scale, name).Cmp(rat(cut)), "%s by %s is %s", a, name, cut)
	})
	_, err := row.DecimalOf(1).Quo(row.Decimal{}, 2, row.RoundHalfUp)
	require.ErrorContains(t, err, "division by zero")
}

// rounded returns the neighbour of r among the fractions of 10^scale that the mode selects.
func rounded(r *big.Rat, scale int, mode string) *big.Rat {
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
	scaled := new(big.Rat).Mul(r, unit)
	floor := new(big.Int).Div(scaled.Num(), scaled.Denom()) // towards minus infinity, as the divisor is positive
	ceil := new(big.Int).Set(floor)
	if !scaled.IsInt() {
		ceil.Add(ceil, big.NewInt(1))
	}
	down, up := floor, ceil // towards and away from zero
	if r.Sign() < 0 {
		down, up = ceil, floor
	}
	distance := func(n *big.Int) *big.Rat {
		d := new(big.Rat).Sub(scaled, new(big.Rat).SetInt(n))
		return d.Abs(d)
	}
	nearer := distance(down).Cmp(distance(up)) // -1: down is nearer
	pick := down
	switch {
	case mode == "up", mode == "half_up" && nearer >= 0, mode == "half_down" && nearer > 0:
		pick = up
	case mode == "half_even" && (nearer > 0 || nearer == 0 && down.Bit(0) == 1):
		pick = up
	case mode == "floor":
		pick = floor
	case mode == "ceiling":
		pick = ceil
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(pick), unit)
}

func TestATextIsADecimalOrAnErrorAndNeverGrows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1.50": "1.50", "+1.5": "1.5", "-0.00": "0.00", ".5": "0.5", "5.": "5", "007": "7", "1e3": "1000", "15e-1": "1.5", "1.5E+3": "1500",
		"-1.25e1": "-12.5", "0e999999": "", "1e1000000000": "", "1e-1000000000": "", "1e1001": "", "": "", ".": "", "-": "", "1,5": "", "1 000": "", "0x10": "", "1_0": "", "NaN": "", "Inf": "", "1e": "", "e5": "", "--1": "", "1.2.3": "",
		strings.Repeat("9", 1000): strings.Repeat("9", 1000), strings.Repeat("9", 1001): "", "0." + strings.Repeat("1", 1000): "0." + strings.Repeat("1", 1000), "0." + strings.Repeat("1", 1001): "",
		"99999999999999999999.5": "99999999999999999999.5",
	} {
		d, err := row.ParseDecimal(text)
		if want == "" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, d.String(), text)
	}
	most, err := row.ParseDecimal(strings.Repeat("9", 1000))
	require.NoError(t, err)
	_, err = most.Mul(most)
	require.ErrorContains(t, err, "too long for a decimal")
}

func TestAFieldReadsNumbersAsItIsDeclared(t *testing.T) {
	t.Parallel()
	two := 2
	money := row.Field{Kind: row.DecimalKind, Scale: &two}
	german := row.Field{Kind: row.DecimalKind, DecimalSeparator: ",", ThousandsSeparator: "."}
	for _, c := range []struct {
		f          row.Field
		text, want string
	}{
		{money, "1.5", "1.50"}, {money, "1.500", "1.50"}, {money, "7", "7.00"}, {money, "1.505", ""}, {money, " 3.20 ", "3.20"},
		{german, "1.234.567,89", "1234567.89"}, {german, "-1234,5", "-1234.5"}, {german, "1.23", ""}, {german, "12.34,5", ""}, {german, "1,234.5", ""}, {german, ".123,0", ""},
		{row.Field{Kind: row.Int, ThousandsSeparator: ","}, "1,234", "1234"}, {row.Field{Kind: row.Int, ThousandsSeparator: ","}, "12,34", ""},
		{row.Field{Kind: row.Float, DecimalSeparator: ","}, "0,5", "0.5"}, {row.Field{Kind: row.Float, DecimalSeparator: ","}, "0.5", ""},
		{row.Field{Kind: row.DecimalKind}, "x", ""}, {row.Field{Kind: row.DecimalKind}, "1e1000000000", ""},
	} {
		v, err := field(t, c.f).Parse(c.text)
		if c.want == "" {
			require.Error(t, err, c.text)
			require.Equal(t, exception.ClassParse, exception.ClassOf(err))
			continue
		}
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, v.String(), c.text)
	}
	_, err := field(t, money).Parse("1,5")
	require.ErrorContains(t, err, `"1,5" is not a decimal (a comma in it needs decimal_separator or thousands_separator)`)
	v, err := field(t, german).Parse("1.234,50")
	require.NoError(t, err)
	require.Equal(t, "1234,50", string(field(t, german).AppendText(nil, v)))
	for want, f := range map[string]row.Field{
		"scale is for decimal, not for int":              {Kind: row.Int, Scale: &two},
		"are for decimal, float and int, not for string": {Kind: row.String, ThousandsSeparator: "."},
		`are both ","`: {Kind: row.DecimalKind, DecimalSeparator: ",", ThousandsSeparator: ","},
		`are both "."`: {Kind: row.DecimalKind, ThousandsSeparator: "."},
		"must not contain a digit, sign or exponent": {Kind: row.DecimalKind, DecimalSeparator: "-"},
	} {
		f.Name = "x"
		_, err := row.NewSchema(f)
		require.ErrorContains(t, err, want)
	}
}
