package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func decimal(t testing.TB, text string) row.Decimal {
	t.Helper()
	d, err := row.ParseDecimal(text)
	require.NoError(t, err)
	return d
}

func TestDecimalsInExpressionsAreExact(t *testing.T) {
	t.Parallel()
	scope := expression.Scope{"a": of[row.Decimal](), "b": of[row.Decimal](), "n": of[int64](), "x": of[float64](), "maybe": of[*row.Decimal](), "s": of[string]()}
	vars := map[string]any{"a": decimal(t, "10.10"), "b": decimal(t, "3"), "n": int64(2), "x": 0.5, "maybe": nil, "s": "1.50"}
	for text, want := range map[string]any{
		"a + b": decimal(t, "13.10"), "a - 0.1": decimal(t, "10.00"), "a * 1.19": decimal(t, "12.0190"), "n * a": decimal(t, "20.20"), "-a": decimal(t, "-10.10"),
		"a + -0.1": decimal(t, "10.00"), "0.1 + a": decimal(t, "10.20"), "a == 10.1": true, "a > 10": true, "10.10 == a": true, "a in [1, 10.1]": true, "a in [b, 10.100]": true, "a < n": false,
		"maybe ?? 0": decimal(t, "0"), "maybe ?? 0.50": decimal(t, "0.50"), "n > 1 ? a : 0": decimal(t, "10.10"),
		"divide(a, b, 4)": decimal(t, "3.3667"), "divide(1, 8, 2)": decimal(t, "0.13"), "divide(1, 8, 2, 'half_even')": decimal(t, "0.12"), "divide(1.0, 8, 3)": decimal(t, "0.125"),
		"round(a, 1)": decimal(t, "10.1"), "round(a)": decimal(t, "10"), "round(b, 2)": decimal(t, "3.00"), "round(decimal('2.5'), 0, 'half_even')": decimal(t, "2"),
		"round(2.675, 2, 'half_even')": 2.68, "round(-2.5, 0, 'floor')": -3.0, "floor(a)": decimal(t, "10"), "ceil(a)": decimal(t, "11"), "abs(-a)": decimal(t, "10.10"),
		"min(a, b, 7)": decimal(t, "3"), "max(b, 2.99, n)": decimal(t, "3"), "min(n, a)": decimal(t, "2"), "decimal(s) * 2": decimal(t, "3.00"), "decimal(x)": decimal(t, "0.5"), "decimal(0.10)": decimal(t, "0.10"), "decimal(n)": decimal(t, "2"),
		"int(a)": int64(10), "float(a)": 10.1, "string(a)": "10.10", "a + 12345678901234567890.5": decimal(t, "12345678901234567900.60"),
	} {
		p, err := expression.Compile(text, scope)
		require.NoError(t, err, text)
		got, err := p.Eval(vars)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, problem := range map[string]string{
		"a + x": "a decimal and a float cannot be combined", "a == x": "cannot compare a decimal and a float: write decimal(x) or float(x)", "a / b": "write divide(a, b, scale)", "a % b": "% is not defined", "a ** 2": "write float(a) ** float(b)",
		"a + 0.1 * x": "cannot be combined", "a + (0.1 + 0.2)": "cannot be combined", "maybe ?? x": "cannot be combined", "a == s": "write decimal(x) or string(x)", "n > 1 ? a : x": "cannot be combined", "min(a, x)": "cannot compare",
		"round(a, 2, 'banker')": "round has no mode", "round(a, 2, s)": "is a text such as 'half_even'", "divide(x, a, 2)": "divide needs an int or a decimal here", "divide(a, b, 1001)": "0 to 1000", "divide(1, 0, 2)": "division by zero", "decimal('1,5')": "is not a decimal",
		"maybe + 1": "may be null: write maybe ?? 0",
	} {
		p, err := expression.Compile(text, scope)
		if err == nil {
			_, err = p.Eval(vars)
		}
		require.ErrorContains(t, err, problem, text)
	}
}
