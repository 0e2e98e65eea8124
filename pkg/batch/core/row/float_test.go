package row_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Rule D7.
func TestAFloatHasOnePlainText(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 1_000_000: "1000000", -1e6: "-1000000", 1234567.5: "1234567.5", 0.1: "0.1", 1e-5: "0.00001",
		1.5e-7: "0.00000015", 1e-17: "0.00000000000000001", 9007199254740993: "9007199254740992", 1e17: "100000000000000000",
		1e20: "100000000000000000000", 1e21: "1e+21", 1e-18: "1e-18", math.MaxFloat64: "1.7976931348623157e+308",
		math.SmallestNonzeroFloat64: "5e-324",
	} {
		require.Equal(t, want, row.FloatValue(x).String())
	}
}

func TestTheTextOfAFloatReadsBackAndHasNoExponentThatItCouldDoWithout(t *testing.T) {
	t.Parallel()
	f := field(t, row.Field{Kind: row.Float})
	rapid.Check(t, func(t *rapid.T) {
		x := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if rapid.Bool().Draw(t, "near") {
			x = rapid.Float64Range(-1e22, 1e22).Draw(t, "x")
		}
		if x-x != 0 {
			t.Skip("not finite")
		}
		text := row.FloatValue(x).String()
		back, err := f.Parse(text)
		require.NoError(t, err)
		require.Equal(t, row.FloatValue(x), back)
		require.Equal(t, text, back.String())
		plain := strconv.FormatFloat(x, 'f', -1, 64)
		if digits := strings.Trim(plain, "-."); len(strings.ReplaceAll(digits, ".", "")) <= 17 {
			require.NotContains(t, text, "e", "%s fits 17 digits", plain)
		}
		if abs := math.Abs(x); abs >= 1e-6 { // below it, encoding/json writes exponents
			asJSON, err := json.Marshal(x)
			require.NoError(t, err)
			require.Equal(t, string(asJSON), text)
		}
	})
}

func TestARealHasItsOwnPrecision(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0.1", row.FloatText(row.Real(0.1)))
	require.Equal(t, "16777.217", row.FloatText(row.Real(16777.217)))
	require.Equal(t, "123456790", row.FloatText(row.Real(123456789)), "its digits, not those of the float64 of the same value")
	of, err := row.ValueOf(float32(0.1))
	require.NoError(t, err)
	require.Equal(t, row.FloatValue(0.1), of)
	check := func(t require.TestingT, x float32) {
		require.Equal(t, x, float32(row.Real(x)))
		require.Equal(t, string(strconv.AppendFloat(nil, float64(x), 'e', -1, 32)), string(strconv.AppendFloat(nil, row.Real(x), 'e', -1, 64)))
	}
	for _, x := range []float32{0, 1, -1, math.SmallestNonzeroFloat32, math.MaxFloat32, 1 << 24, 1<<24 + 2, 1e10, 1.1754944e-38} {
		check(t, x)
	}
	rapid.Check(t, func(t *rapid.T) {
		if x := math.Float32frombits(rapid.Uint32().Draw(t, "bits")); x-x == 0 {
			check(t, x)
		}
	})
}

func TestIntsAndFloatsMeetByTheirValues(t *testing.T) {
	t.Parallel()
	ints := rapid.OneOf(rapid.Int64(), rapid.Int64Range(1<<53-3, 1<<53+3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, math.MinInt64 + 1}))
	rapid.Check(t, func(t *rapid.T) {
		i := ints.Draw(t, "i")
		x := rapid.OneOf(rapid.Float64(), rapid.Just(float64(i)), rapid.Just(math.Nextafter(float64(i), 0)), rapid.Just(float64(i)+0.5)).Draw(t, "x")
		exact := new(big.Float).SetInt64(i)
		require.Equal(t, exact.Cmp(big.NewFloat(x)), row.CompareIntFloat(i, x))
		n, whole := row.IntOf(x)
		require.Equal(t, whole, big.NewFloat(x).IsInt() && x >= math.MinInt64 && x < math.MaxInt64)
		require.True(t, !whole || float64(n) == x)
		f, same := row.FloatOf(i)
		require.Equal(t, same, exact.Cmp(big.NewFloat(f)) == 0)
	})
	require.Equal(t, 1, row.CompareIntFloat(math.MinInt64, math.NaN()))
	require.Equal(t, -1, row.CompareIntFloat(math.MaxInt64, math.Inf(1)))
	require.Equal(t, 1, row.CompareIntFloat(math.MinInt64, math.Inf(-1)))
}

func TestIntsAreReadAsStrconvReadsThem(t *testing.T) {
	t.Parallel()
	field := row.Field{Name: "n", Kind: row.Int}
	texts := rapid.OneOf(
		rapid.StringMatching(` ?[+-]{0,2}[0-9]{0,21}[.x ]?`),
		rapid.SampledFrom([]string{"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "999999999999999999", "-0", "00", "-", "1_0", "٣"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		if text == "" { // a null, which the field does not allow
			return
		}
		want, wrong := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		got, err := field.Parse(text)
		require.Equal(t, wrong == nil, err == nil, "%q: %v", text, err)
		if err == nil {
			require.Equal(t, want, got.Int(), "%q", text)
		}
	})
}

func TestParseFloatIsTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[-+]?([0-9]{0,18}\.[0-9]{0,18}|[0-9]{1,19}|0\.0{0,17}[0-9]{1,3}|90071992547409[0-9]{2}(\.[0-9]{0,2})?)`).Draw(t, "text")
		want, wantErr := strconv.ParseFloat(text, 64)
		got, err := row.ParseFloat(text)
		require.Equal(t, wantErr == nil, err == nil, text)
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), text)
	})
}
