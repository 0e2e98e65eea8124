package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Rule D13.
func TestListsInExpressions(t *testing.T) {
	t.Parallel()
	scope := expression.Scope{
		"tags": {Type: expression.GoType(row.ListOf(row.String))}, "ints": of[[]int64](), "amounts": of[[]row.Decimal](), "s": of[string](), "n": of[int64](), "later": of[[]int64](),
		"maybe": {Type: expression.GoType(row.ListOf(row.String)), Nullable: true}, "holes": of[[]*int64](), "dates": of[[]row.Date](),
	}
	one, three := int64(1), int64(3)
	vars := map[string]any{"tags": []string{"a", "b,c"}, "ints": []int64{1, 2, 3}, "amounts": []row.Decimal{decimal(t, "1.50")}, "s": "x;y", "n": int64(2), "later": "[4,5]", "maybe": nil,
		"holes": []*int64{&three, nil, &one, &three}, "dates": []row.Date{2, 1}}
	for text, want := range map[string]any{
		"len(tags)": int64(2), "len(split('', ','))": int64(0), "tags[0]": "a", "tags[-1]": "b,c", "tags[2]": nil, "ints[n] ?? 0": int64(3), "'a' in tags": true, "n not in ints": false, "tags contains 'x'": false, "1.5 in amounts": true, "2 in [1, n]": true,
		"join('|', tags)": "a|b,c", "join('-', 'z', ints, nil)": "z-1-2-3", "split(s, ';')": []string{"x", "y"}, "split(s, ';')[1]": "y", "[1, n]": []int64{1, 2}, "['a', s]": []string{"a", "x;y"}, "[1, 2.5]": []float64{1, 2.5}, "string(ints)": "[1,2,3]", "json(tags)": row.JSON(`["a","b,c"]`),
		"holes[1]": nil, "holes[2]": int64(1), "len(holes)": int64(4), "0 in holes": false, "join(',', holes)": "3,1,3", "string(holes)": "[3,null,1,3]", "holes": []*int64{&three, nil, &one, &three},
		"sort(holes)": []*int64{&one, &three, &three, nil}, "distinct(holes)": []*int64{&three, nil, &one}, "sum(holes)": int64(7), "sum(amounts)": decimal(t, "1.50"), "sum([1.5, 2])": 3.5,
		"min(holes)": int64(1), "max(dates)": row.Date(2), "max(split('', ','))": nil, "sort(dates)": []row.Date{1, 2}, "sort(tags)[-1]": "b,c", "sum(ints) + 1": int64(7), "ints[0] != nil and ints[0] > 0": true, "holes[1] == nil ? 0 : holes[1] + 1": int64(0),
		"[]": []string{}, "maybe ?? []": []string{}, "len(maybe ?? [])": int64(0), "n > 1 ? ints : []": []int64{1, 2, 3}, "n > 2 ? ints : []": []int64{}, "ints == []": false, "[] == split('', ',')": true,
		"ints == [1, 2, 3]": true, "ints != later": true, "later": []int64{4, 5}, "maybe ?? tags": []string{"a", "b,c"}, "amounts": []row.Decimal{decimal(t, "1.50")},
	} {
		p, err := expression.Compile(text, scope)
		require.NoError(t, err, text)
		got, err := p.Eval(vars)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, problem := range map[string]string{
		"ints > later": "cannot compare lists, which have no order", "'a' in ints": "cannot compare an int and a string", "ints == 1": "write x in list", "tags[0] + 'x'": "may be null", "tags['a']": "has no field a", "s[0]": "has no elements", "tags[s]": "is an int",
		"sort([true])": "sort cannot compare bools", "sum(tags)": "needs a list of numbers, not a list of string", "sum(1)": "needs a list here, not an int", "min(1)": "min needs a list here, or more values",
		"unique(tags)": "write distinct(list)", "ints[0] + 1": "ints[0] may be null: write ints[0] ?? 0, or test it first (ints[0] != nil and ...)", "ints[n] + 1": "this may be null", "sum([9223372036854775807, n])": "does not fit an int", "max(ints) > 1": "this may be null", "[[1], [2]]": "there are no lists of list of int", "[1, 'a']": "the alternatives are", "split(s, '')": "the separator is empty", "maybe[0]": "maybe may be null", "array_length(tags)": "write len(list)", "[nil]": "nil cannot be used here", "s in n": "in needs a list",
	} {
		p, err := expression.Compile(text, scope)
		if err == nil {
			_, err = p.Eval(vars)
		}
		require.Error(t, err, text)
		hint := ""
		if e, ok := err.(*expression.Error); ok {
			hint = e.Hint
		}
		require.Contains(t, err.Error()+" "+hint, problem, text)
	}
}
