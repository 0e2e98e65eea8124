//test:plain

package validate

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func strikes(t testing.TB) item.Type {
	t.Helper()
	s, err := row.NewSchema(
		row.Field{Name: "id", Kind: row.Int},
		row.Field{Name: "cost", Kind: row.Float},
		row.Field{Name: "airport", Kind: row.String, Nullable: true},
	)
	require.NoError(t, err)
	return item.RowOf("strike", s)
}

func rules(pairs ...string) config {
	var c config
	for i := 0; i < len(pairs); i += 2 {
		c.Rules = append(c.Rules, registry.NamedExpression{Name: pairs[i], Expression: registry.Expression{Text: pairs[i+1]}})
	}
	return c
}

func validated(t *testing.T, cfg config, values ...row.Value) error {
	t.Helper()
	in := strikes(t)
	p, err := newProcessor(cfg, in)
	require.NoError(t, err)
	cell := p.NewCell().(*item.Cell[item.Row])
	out, advance, err := p.Chain(cell)
	require.NoError(t, err)
	require.Same(t, cell, out)
	cell.Item = row.New(in.Schema(), values)
	return advance(context.Background())
}

func TestAnItemThatKeepsAllRulesPasses(t *testing.T) {
	t.Parallel()
	cfg := rules("cost_positive", "item.cost >= 0", "has_airport", "item.airport != nil and len(item.airport) > 0")
	require.NoError(t, validated(t, cfg, row.IntValue(1), row.FloatValue(0), row.StringValue("ROM")))
}

func TestABrokenRuleIsNamedWithTheValuesItUsed(t *testing.T) {
	t.Parallel()
	cfg := rules("cost_positive", "item.cost >= 0")
	err := validated(t, cfg, row.IntValue(1), row.FloatValue(-3.5), row.Value{})
	require.EqualError(t, err, "validate: rule cost_positive is broken: `item.cost >= 0`, with item.cost = -3.5")
	require.Equal(t, exception.ClassValidate, exception.ClassOf(err))
	require.True(t, exception.IsSkippable(err))
	require.False(t, exception.IsRetryable(err))
}

func TestAllBrokenRulesAreNamed(t *testing.T) {
	t.Parallel()
	cfg := rules("a", "item.cost >= 0", "b", "item.id > 0", "c", "item.airport != nil and item.airport != 'X'")
	err := validated(t, cfg, row.IntValue(1), row.FloatValue(-1), row.Value{})
	require.EqualError(t, err, "validate: rule a is broken: `item.cost >= 0`, with item.cost = -1\n"+
		"rule c is broken: `item.airport != nil and item.airport != 'X'`, with item.airport = null")
	require.Equal(t, exception.ClassValidate, exception.ClassOf(err))
}

func TestASingleRuleNeedsNoName(t *testing.T) {
	t.Parallel()
	cfg := config{Rule: registry.Expression{Text: "item.airport == 'ROM' or item.airport == nil"}}
	_, err := newProcessor(cfg, strikes(t))
	require.ErrorContains(t, err, "rule: item.airport may be null")
	cfg.Rule.Text = "item.airport == nil or item.airport == 'ROM'"
	err = validated(t, cfg, row.IntValue(1), row.FloatValue(1), row.StringValue("NAP"))
	require.EqualError(t, err, "validate: the rule is broken: `item.airport == nil or item.airport == 'ROM'`, with item.airport = \"NAP\"")
}

func TestARuleThatFailsIsAnExpressionError(t *testing.T) {
	t.Parallel()
	err := validated(t, rules("ratio", "item.cost / item.id > 1"), row.IntValue(0), row.FloatValue(1), row.Value{})
	require.ErrorContains(t, err, "validate: rule ratio: expression `item.cost / item.id > 1`, character 11: division by zero")
	require.Equal(t, exception.ClassExpression, exception.ClassOf(err))
}

func TestAllMistakesInRulesAreReportedAtLoad(t *testing.T) {
	t.Parallel()
	cfg := rules("a", "item.cost", "good", "item.id > 0", "b", "item.airport contains 'x'")
	_, err := Components()[0].Types(&cfg, strikes(t))
	require.EqualError(t, err, "rules.a: a bool is needed here, not a float\n"+
		"rules.b: item.airport may be null: write item.airport ?? '', or test it first (item.airport != nil and ...)")
	var key *registry.ConfigError
	require.ErrorAs(t, err, &key)
	require.Equal(t, "rules.a", key.Key)

	var empty config
	require.ErrorContains(t, empty.Validate(), "needs a rule")
	_, err = newProcessor(empty, strikes(t))
	require.ErrorContains(t, err, "needs a rule")
}

type order struct{ Amount int }

func TestGoTypesAreValidated(t *testing.T) {
	t.Parallel()
	cfg := rules("positive", "item.amount > 0")
	built, err := Components()[0].New(context.Background(), &cfg, registry.BuildContext{In: item.TypeOf[order]("")})
	require.NoError(t, err)
	p := built.(item.Processor)
	cell := p.NewCell().(*item.Cell[order])
	_, advance, err := p.Chain(cell)
	require.NoError(t, err)
	require.ErrorContains(t, advance(context.Background()), "with item.amount = 0")
	cell.Item.Amount = 1
	require.NoError(t, advance(context.Background()))
}

func TestAValidItemCostsNoAllocation(t *testing.T) {
	in := strikes(t)
	p, err := newProcessor(rules("a", "item.cost >= 0", "b", "item.id > 0"), in)
	require.NoError(t, err)
	cell := p.NewCell().(*item.Cell[item.Row])
	_, advance, err := p.Chain(cell)
	require.NoError(t, err)
	cell.Item = row.New(in.Schema(), []row.Value{row.IntValue(1), row.FloatValue(1), {}})
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = advance(context.Background()) }))
}
