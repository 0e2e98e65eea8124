package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	csvitem "github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// w5 finds the row after the first 90 % of a file, as a restart does.
func w5() Workload {
	return Workload{
		Name: "w5", Title: "a restart at 90 % of a csv file: open it, and read the next row", Share: 5, Part: true,
		Contestants: []Contestant{
			inside{name: "seek to a known offset", run: seekByHand},
			inside{name: oursPrefix + " csv reader at its position", run: seekWithPosition},
			inside{name: "read all rows before it again", run: readAgain},
		},
		Check: func(_ context.Context, w Work, r Result) error {
			if want := strconv.Itoa(firstID + restartRow(w)); r.Found != want {
				return fmt.Errorf("it found row %s, and not %s", r.Found, want)
			}
			return nil
		},
	}
}

// restartRow is the number of the searched row, from 0.
func restartRow(w Work) int { return w.Rows / 10 * 9 }

func readAgain(_ context.Context, w Work) (r Result, err error) {
	begin := time.Now()
	in, err := openSource(w.Input)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	for range restartRow(w) {
		if _, err := in.csv.Read(); err != nil {
			return r, err
		}
	}
	fields, err := in.csv.Read()
	if err != nil {
		return r, err
	}
	return Result{Seconds: time.Since(begin).Seconds(), Found: fields[0]}, nil
}

// seekByHand knows the offset, which is found before the time begins.
func seekByHand(_ context.Context, w Work) (r Result, err error) {
	in, err := openSource(w.Input)
	if err != nil {
		return r, err
	}
	for range restartRow(w) {
		if _, err := in.csv.Read(); err != nil {
			return r, errors.Join(err, in.close())
		}
	}
	offset := in.csv.InputOffset()
	if err := in.close(); err != nil {
		return r, err
	}
	begin := time.Now()
	f, err := os.Open(w.Input)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return r, err
	}
	fields, err := csv.NewReader(bufio.NewReaderSize(f, 64<<10)).Read()
	if err != nil {
		return r, err
	}
	return Result{Seconds: time.Since(begin).Seconds(), Found: fields[0]}, nil
}

func seekWithPosition(ctx context.Context, w Work) (r Result, err error) {
	at, err := positionBehind(ctx, w, restartRow(w))
	if err != nil {
		return r, err
	}
	begin := time.Now()
	reader, err := openReader(ctx, w, at)
	if err != nil {
		return r, err
	}
	items := reader.NewItems(1)
	if err := reader.Fill(ctx, items, 1); err != nil {
		return r, err
	}
	r.Seconds = time.Since(begin).Seconds()
	row, ok := items.At(0).(saleItem)
	if !ok {
		return r, fmt.Errorf("the reader has read a %T", items.At(0))
	}
	r.Found = strconv.FormatInt(row.ID, 10)
	return r, closeReader(ctx, reader)
}

// openReader opens our reader of csv at a position; nil means the start.
func openReader(ctx context.Context, w Work, at item.Position) (item.Reader, error) {
	reader, err := testcomponent.Make[item.Reader](csvitem.Components(), registry.KindReader,
		testcomponent.Settings{"path": w.Input, "header": "exact"}, registry.BuildContext{Out: item.TypeOf[saleItem]("sale")})
	if err != nil {
		return nil, err
	}
	opener, ok := reader.Component().(item.Opener)
	if !ok {
		return nil, fmt.Errorf("%T cannot be opened", reader.Component())
	}
	return reader, opener.Open(ctx, at)
}

func closeReader(ctx context.Context, reader item.Reader) error {
	if c, ok := reader.Component().(item.Closer); ok {
		return c.Close(ctx)
	}
	return nil
}

func positionBehind(ctx context.Context, w Work, rows int) (item.Position, error) {
	reader, err := openReader(ctx, w, nil)
	if err != nil {
		return nil, err
	}
	const chunk = 1000
	items := reader.NewItems(chunk)
	for left := rows; left > 0; left -= chunk {
		items.Reset()
		if err := reader.Fill(ctx, items, min(left, chunk)); err != nil {
			return nil, err
		}
	}
	positioner, ok := reader.Component().(item.Positioner)
	if !ok {
		return nil, fmt.Errorf("%T has no position", reader.Component())
	}
	at, err := positioner.Position()
	return at, errors.Join(err, closeReader(ctx, reader))
}
