package item_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type writtenDocs []string

func (d *writtenDocs) WriteDocuments(_ context.Context, docs [][]byte) error {
	for _, doc := range docs {
		*d = append(*d, string(doc))
	}
	return nil
}

type writtenTexts []string

func (r *writtenTexts) WriteRecords(_ context.Context, _ *row.Schema, list [][]row.Value) error {
	for _, values := range list {
		for _, v := range values {
			*r = append(*r, v.String())
		}
	}
	return nil
}

func writeItems[T any](t require.TestingT, items ...T) (texts writtenTexts, docs writtenDocs, err error) {
	of := item.TypeOf[T]("")
	asRecords, err := of.ToRecords(&texts)
	require.NoError(t, err)
	asDocuments, err := of.ToDocuments(&docs)
	require.NoError(t, err)
	slice := item.NewSlice[T](len(items))
	slice.Items = append(slice.Items, items...)
	if err := asRecords.Write(context.Background(), slice); err != nil {
		return texts, docs, err
	}
	return texts, docs, asDocuments.Write(context.Background(), slice)
}

func TestNumbersOfStructsHaveTheCanonicalTextInRecordsAndDocuments(t *testing.T) {
	t.Parallel()
	type number struct {
		Wide float64 `json:"wide"`
		Real float32 `json:"real"`
	}
	for _, c := range []struct {
		of         number
		wide, real string
	}{
		{number{1e6, 0.1}, "1000000", "0.1"},
		{number{math.Copysign(0, -1), float32(math.Copysign(0, -1))}, "0", "0"},
		{number{1e-7, 1.5e-12}, "0.0000001", "0.0000000000015"},
		{number{-1.25e-17, -1e-17}, "-0.0000000000000000125", "-0.00000000000000001"},
		{number{1e20, 3e38}, "100000000000000000000", "3e+38"},
		{number{1e21, 1e-18}, "1e+21", "1e-18"},
	} {
		texts, docs, err := writeItems(t, c.of)
		require.NoError(t, err)
		require.Equal(t, writtenTexts{c.wide, c.real}, texts)
		require.Equal(t, writtenDocs{`{"wide":` + c.wide + `,"real":` + c.real + `}`}, docs)
	}
}

func TestOnlyTheNumbersOfADocumentAreMadePlain(t *testing.T) {
	t.Parallel()
	type document struct {
		Text string          `json:"text"`
		Own  json.RawMessage `json:"own"`
		List []float64       `json:"list"`
	}
	var docs writtenDocs
	w, err := item.TypeOf[document]("").ToDocuments(&docs)
	require.NoError(t, err)
	slice := item.NewSlice[document](1)
	slice.Items = append(slice.Items, document{
		`-0 "1e-7" \`, json.RawMessage(`[1.2345678901234567890123e-05,-0.50,120e+1,1e400,-1E-2,0.001e-3,{"-0":-0.0}]`), []float64{1e-7},
	})
	require.NoError(t, w.Write(context.Background(), slice))
	require.Equal(t, writtenDocs{`{"text":"-0 \"1e-7\" \\",` +
		`"own":[0.000012345678901234567890123,-0.50,1200,1e400,-0.01,0.000001,{"-0":0}],"list":[0.0000001]}`}, docs)
}

func TestADocumentMeansTheSameWithPlainNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		of := struct {
			Xs []float64 `json:"xs"`
			S  string    `json:"s"`
		}{Xs: rapid.SliceOf(rapid.Float64()).Draw(t, "xs"), S: rapid.StringOf(rapid.SampledFrom([]rune(`"\-+e01 `))).Draw(t, "s")}
		var docs writtenDocs
		w, err := item.TypeOf[any]("").ToDocuments(&docs)
		require.NoError(t, err)
		slice := item.NewSlice[any](1)
		slice.Items = append(slice.Items, of)
		require.NoError(t, w.Write(context.Background(), slice))
		back := of
		require.NoError(t, json.Unmarshal([]byte(docs[0]), &back))
		for i := range of.Xs {
			require.Equal(t, of.Xs[i]+0, back.Xs[i])
		}
		require.Equal(t, of.S, back.S)
		require.NotContains(t, docs[0], "[-0,")
	})
}

func TestAnIntThatDoesNotFitIsAnInvalidItemAndNoNegativeNumber(t *testing.T) {
	t.Parallel()
	type big struct{ N uint64 }
	texts, _, err := writeItems(t, big{math.MaxInt64})
	require.NoError(t, err)
	require.Equal(t, writtenTexts{"9223372036854775807"}, texts)
	_, _, err = writeItems(t, big{math.MaxInt64 + 1})
	require.ErrorContains(t, err, "field n: 9223372036854775808 does not fit an int")
}
