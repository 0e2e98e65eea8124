package s3_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/contrib/parquet"
	"github.com/surfin-batch/surfin/contrib/s3"
	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testplace"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/json"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/text"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type sale struct {
	ID   int64
	Name string
}

func sales(testing.TB) []item.Items {
	return itemtest.Chunks([]sale{{1, "a"}, {2, "b"}}, []sale{{3, "c"}}, []sale{{4, "d"}, {5, "e"}})
}

type label struct{ Text string }

func labels(testing.TB) []item.Items {
	return itemtest.Chunks([]label{{"a"}, {"b"}}, []label{{"c"}}, []label{{"d"}, {"e"}})
}

func TestABucketIsAPlace(t *testing.T) {
	t.Parallel()
	testplace.Place(t, func(t testing.TB) testplace.Config {
		g, name := bucket(t)
		return testplace.Config{
			In: g.in(t), Folder: "s3://" + name,
			Put: func(t testing.TB, key, text string) { g.put(t, name, key, text) },
			Get: func(t testing.TB, key string) string { return g.get(t, name, key) },
			Names: func(t testing.TB) []string {
				return append(g.keys(t, name, ""), g.uploads(t, name)...)
			},
		}
	})
}

func TestWritersKeepTheirContractInAStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, key  string
		components []registry.Component
	}{
		{"csv", "out/sales.csv", testcomponent.Named(csv.Components(), "csv")},
		{"csv in gzip", "out/sales.csv.gz", testcomponent.Named(csv.Components(), "csv")},
		{"json", "sales.json", testcomponent.Named(json.Components(), "json")},
		{"jsonl in zstd", "sales.jsonl.zst", testcomponent.Named(json.Components(), "jsonl")},
		{"fixed", "sales.txt", testcomponent.Named(text.Components(), "fixed")},
		{"lines", "names.txt", testcomponent.Named(text.Components(), "lines")},
		{"parquet", "sales.parquet", testcomponent.Named(parquet.Components(), "parquet")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, name := bucket(t)
			url := "s3://" + name + "/" + c.key
			chunks := sales
			if c.name == "lines" {
				chunks = labels
			}
			write := func(t testing.TB, attempt core.Attempt) item.Writer {
				t.Helper()
				of := item.TypeOf[sale]("sale")
				settings := testcomponent.Settings{"path": url}
				switch c.name {
				case "fixed":
					settings["columns"] = testcomponent.Settings{"id": testcomponent.Settings{"at": "1-4"}, "name": testcomponent.Settings{"at": "5-8"}}
				case "lines":
					of = item.TypeOf[label]("label")
				}
				n := testcomponent.Nested(c.components, registry.KindWriter, settings)
				made, err := n.Component.New(t.Context(), n.Config, registry.BuildContext{
					In: of, Attempt: func(context.Context) (core.Attempt, error) { return attempt, nil },
				})
				require.NoError(t, err)
				return made.(item.Writer)
			}
			itemtest.Writer(t, itemtest.WriterConfig{
				New:    func(t testing.TB) item.Writer { return write(t, core.Attempt{Exclusive: true}) },
				NewFor: write,
				Chunks: chunks, Context: g.in(t), Hidden: true,
				Contents: func(t testing.TB) string { return g.get(t, name, c.key) },
				Clear:    func(t testing.TB) { g.clear(t, name) },
				Lose: func(t testing.TB) {
					for _, key := range g.keys(t, name, c.key+".part.") {
						require.NoError(t, g.client.RemoveObject(context.Background(), name, key, minioRemove()))
					}
				},
			})
			g.clear(t, name)
		})
	}
}

// A connection that is cut is opened again where it ended.
func TestABigObjectIsReadOverALineThatIsCut(t *testing.T) {
	t.Parallel()
	g, name := bucket(t)
	proxy := testproxy.New(t, g.url)
	ctx := gateway{url: proxy.URL()}.in(t)
	content := strings.Repeat("0123456789abcde\n", 4<<16)
	g.put(t, name, "big.csv", content)
	f, err := place.Open(ctx, "s3://"+name+"/big.csv")
	require.NoError(t, err)
	in := f.From(0)
	var text strings.Builder
	for i := 0; ; i++ {
		n, err := io.CopyN(&text, in, 100_000)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "after %d bytes", n)
		if i%7 == 3 {
			proxy.Cut()
			proxy.Heal()
		}
	}
	require.Equal(t, content, text.String())
}

// opened opens an output, as a step of an attempt does.
func opened(ctx context.Context, t *testing.T, url string, attempt core.Attempt, at *filestream.OutputPosition) *filestream.Output {
	t.Helper()
	o := output(url, attempt)
	require.NoError(t, o.Open(ctx, at))
	return o
}

func output(url string, attempt core.Attempt) *filestream.Output {
	cfg := filestream.OutputConfig{Path: url, Attempt: func(context.Context) (core.Attempt, error) { return attempt, nil }}
	if strings.HasSuffix(url, ".made") {
		cfg.Maker = copies{}
	}
	return filestream.NewOutput(cfg)
}

// keys are a file that is published as it is written, and one that is made of a journal.
func keys() []string { return []string{"out.csv", "out.made"} }

// copies makes a file like its journal.
type copies struct{}

func (copies) Make(_ context.Context, journal *bufio.Reader, file io.Writer) error {
	_, err := io.Copy(file, journal)
	return err
}

func (copies) Check(file io.ReaderAt, size int64) error {
	_, err := io.Copy(io.Discard, io.NewSectionReader(file, 0, size))
	return err
}

func commit(t *testing.T, o *filestream.Output, text string) *filestream.OutputPosition {
	t.Helper()
	_, err := o.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, o.Sync())
	at := o.Position()
	require.NoError(t, o.Release(t.Context()))
	return &at
}

func stage(t *testing.T, o *filestream.Output) *filestream.OutputPosition {
	t.Helper()
	staged, err := o.Stage(t.Context())
	require.NoError(t, err)
	require.True(t, staged)
	at := o.Position()
	require.NoError(t, o.Release(t.Context()))
	return &at
}

func publish(t *testing.T, o *filestream.Output) {
	t.Helper()
	stage(t, o)
	require.NoError(t, o.Finish(t.Context()))
	require.NoError(t, o.Close())
}

func attempt(instance core.JobInstanceID, id core.StepExecutionID) core.Attempt {
	return core.Attempt{Repository: "r", Instance: instance, Step: "load", ID: id}
}

// An attempt that is frozen between its second commit and the completion of its upload finds that gone.
func TestAnAttemptThatWakesBeforeItPublishesReplacesNothing(t *testing.T) {
	t.Parallel()
	for _, key := range keys() {
		for _, later := range []string{"the next attempt", "a later instance", "both"} {
			t.Run(key+" and "+later, func(t *testing.T) {
				t.Parallel()
				wakesBeforeItPublishes(t, key, later)
			})
		}
	}
}

func wakesBeforeItPublishes(t *testing.T, key, later string) {
	g, name := bucket(t)
	ctx, url := g.in(t), "s3://"+name+"/"+key
	frozen := opened(ctx, t, url, attempt(1, 1), nil)
	commit(t, frozen, "one\n")
	at := stage(t, frozen)
	want := "one\n"
	if later != "a later instance" {
		next := opened(ctx, t, url, attempt(1, 2), at)
		publish(t, next)
		require.Equal(t, "one\n", g.get(t, name, key))
	}
	if later != "the next attempt" {
		want = "another\n"
		other := opened(ctx, t, url, attempt(2, 3), nil)
		commit(t, other, want)
		publish(t, other)
	}
	require.ErrorIs(t, frozen.Finish(t.Context()), place.ErrSuperseded)
	require.NoError(t, frozen.Close())
	require.Equal(t, want, g.get(t, name, key))
	if later != "a later instance" { // else the first one may still be restarted
		g.clean(t, name, key)
	}
}

// An attempt removes the objects that it sent after another one had taken over.
func TestWhatAnAttemptSendsAfterItWasSupersededGoesWithIt(t *testing.T) {
	t.Parallel()
	for _, key := range keys() {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			sendsAfterItWasSuperseded(t, key)
		})
	}
}

func sendsAfterItWasSuperseded(t *testing.T, key string) {
	g, name := bucket(t)
	ctx, url := g.in(t), "s3://"+name+"/"+key
	frozen := opened(ctx, t, url, attempt(1, 1), nil)
	at := commit(t, frozen, "one\n")
	next := opened(ctx, t, url, attempt(1, 2), at)
	commit(t, next, "two\n")
	_, err := frozen.Write([]byte("lost\n"))
	require.NoError(t, err)
	require.NoError(t, frozen.Sync())
	require.NoError(t, frozen.Close())
	publish(t, next)
	require.Equal(t, "one\ntwo\n", g.get(t, name, key))
	g.clean(t, name, key)
}

// A publication that was completed before a crash is not repeated.
func TestACompletedPublicationIsFoundAfterACrash(t *testing.T) {
	t.Parallel()
	for _, key := range keys() {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			completedBeforeACrash(t, key)
		})
	}
}

func completedBeforeACrash(t *testing.T, key string) {
	g, name := bucket(t)
	ctx, url := g.in(t), "s3://"+name+"/"+key
	first := opened(ctx, t, url, attempt(1, 1), nil)
	commit(t, first, "one\n")
	at := stage(t, first)
	require.NoError(t, first.Finish(t.Context()))
	again := opened(ctx, t, url, attempt(1, 2), at)
	require.True(t, again.Finished())
	require.NoError(t, again.Finish(t.Context()))
	require.NoError(t, again.Close())
	g.clean(t, name, key)

	other := opened(ctx, t, url, attempt(2, 3), nil)
	commit(t, other, "other\n")
	publish(t, other)
	lost := output(url, attempt(1, 4))
	require.ErrorContains(t, lost.Open(ctx, at), "restart with --from-start")
	require.NoError(t, lost.Close())
	require.Equal(t, "other\n", g.get(t, name, key))
}

// A process may die before an upload has its note, and while the store merges pieces.
func TestUploadsOfADeadAttemptAreEnded(t *testing.T) {
	t.Parallel()
	g, name := bucket(t)
	ctx, url := g.in(t), "s3://"+name+"/out.csv"
	dead := opened(ctx, t, url, attempt(1, 1), nil)
	at := commit(t, dead, "one\n")
	for _, key := range []string{"out.csv", "out.csv" + at.Part + "/0000000000000000-4-0"} {
		_, err := g.client.NewMultipartUpload(t.Context(), name, key, minio.PutObjectOptions{})
		require.NoError(t, err)
	}
	next := opened(ctx, t, url, attempt(1, 2), at)
	commit(t, next, "two\n")
	publish(t, next)
	require.Equal(t, "one\ntwo\n", g.get(t, name, "out.csv"))
	g.clean(t, name, "out.csv")
}

func TestTheSettingsOfAPlaceAreChecked(t *testing.T) {
	t.Parallel()
	c := s3.Components()[0]
	schemes := []place.Scheme{{Name: c.Name, Config: c.Config}}
	for want, setting := range map[string]place.Setting{
		"f:1:1: places.s3.secret_key takes the name of a secret": {URL: "s3", Values: map[string]string{"access_key": "a", "secret_key": "hidden"}, Where: map[string]string{"secret_key": "f:1:1"}},
		"f:2:3: places.s3://b: unknown key regoin":               {URL: "s3://b/", Values: map[string]string{"regoin": "x"}, Where: map[string]string{"regoin": "f:2:3"}},
		"f:1:1: places.gs: this program has no place gs://":      {URL: "gs", Where: map[string]string{"": "f:1:1"}},
		"access_key and secret_key belong together":              {URL: "s3", Values: map[string]string{"access_key": "a"}},
		"endpoint: a URL such as":                                {URL: "s3", Values: map[string]string{"endpoint": "s3.example.com"}},
		"f:3:3: places: s3://b/x is a URL with a user":           {URL: "s3://x@b", Where: map[string]string{"": "f:3:3"}},
		"path_style": {URL: "s3", Values: map[string]string{"path_style": "yes"}},
	} {
		_, err := place.NewSet(schemes, []place.Setting{setting}, nil)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hidden")
	}
	set, err := place.NewSet(schemes, []place.Setting{{URL: "s3://Lake/", Values: map[string]string{"region": "x"}}}, nil)
	require.NoError(t, err)
	require.NotNil(t, set)
	_, err = place.NewSet(nil, []place.Setting{{URL: "s3", Values: map[string]string{"region": "x"}}}, nil)
	require.NoError(t, err, "a program without S3 may have the same surfin.yaml")
}
