package sqlscript_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestWhereAVariableStands(t *testing.T) {
	t.Parallel()
	const free, literal, comment, name = sqlscript.Free, sqlscript.InLiteral, sqlscript.InComment, sqlscript.InName
	for text, want := range map[string][]sqlscript.Place{
		"select 1": {},
		"select @": {free},
		"@":        {free},
		"select @ from t where a = @ and b in (@,@)":     {free, free, free, free},
		"select 'x @' || @":                              {literal, free},
		"select 'it''s @'":                               {literal},
		"select '@', '@ and @'":                          {literal, literal, literal},
		"select 'a @":                                    {literal},
		"select 1 -- @\n, @":                             {comment, free},
		"select /* @ @ */ @":                             {comment, comment, free},
		"select 1 -- @":                                  {comment},
		"select * from @":                                {name},
		"select * from a join @ on true":                 {name},
		"insert into @ values (@)":                       {name, free},
		"update @ set a = @":                             {name, free},
		"drop table @":                                   {name},
		"delete from @ where id = @":                     {name, free},
		"select * from sales_@":                          {name},
		"select * from @_old":                            {name},
		"select * from public.@":                         {name},
		`select "@" from t`:                              {name},
		"select extract(year from @)":                    {free},
		"select substring(@ from @ for @) from t":        {free, free, free},
		"select a is distinct from @ from t":             {free},
		"select x from (select @ from @) y where a = @;": {free, name, free},
		"select 1; select (@)":                           {free},
		"select (@)::date, interval '1 day' * @":         {free, free},
		"select a+@":                                     {free},
	} {
		for _, dialect := range []tx.Dialect{tx.SQLite, tx.Postgres} {
			places := []sqlscript.Place{}
			for _, v := range sqlscript.Variables(strings.Split(text, "@"), dialect) {
				places = append(places, v.Place)
			}
			require.Equal(t, want, places, "%s: %s", dialect, text)
		}
	}
}

func TestEveryVariableHasAPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOf(rapid.SampledFrom([]rune("a '\"`[]$;-/*\n()E.\x01é1")))
		parts := rapid.SliceOfN(part, 1, 6).Draw(t, "parts")
		for _, dialect := range []tx.Dialect{tx.SQLite, tx.Postgres} {
			require.Len(t, sqlscript.Variables(parts, dialect), len(parts)-1)
		}
	})
}

func TestALiteralIsSplitAtItsVariables(t *testing.T) {
	t.Parallel()
	list := sqlscript.Variables(strings.Split("select @, 'x @ y @'", "@"), tx.SQLite)
	require.Len(t, list, 3)
	require.Equal(t, []string{"x ", " y ", ""}, list[1].Literal)
	require.Equal(t, 1, list[1].First)
	require.Equal(t, list[1], list[2])
}
