// Package hashing is a step for a CPU: numbers that are hashed, over and over, and
// forgotten. Benchmarks run it as one step and in parts.
//
// It imports package batch, and fx for the registration.
package hashing

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
)

const rounds = 400

// Components are the reader numbers, the processor hash and the writer forget.
func Components() fx.Option {
	return fx.Options(
		batch.Reader[int64]("numbers", func(s share) *numbers { return &numbers{s} }),
		batch.Processor[int64, string]("hash", func() hash { return hash{} }),
		batch.Writer[string]("forget", func() forget { return forget{} }),
	)
}

// Job is a job file of one step over that many numbers.
func Job(name, partition string, items int) string {
	text, first, step := "job: "+name+"\nflow:\n- step: work\n", "0", "1"
	if partition != "" {
		text += "  partition: " + partition + "\n"
		first, step = "${part.index}", "${part.count}"
	}
	return text + fmt.Sprintf("  chunk:\n    size: 1000\n    reader: {numbers: {first: %q, step: %q, items: %d}}\n    processor: hash\n    writer: forget\n", first, step, items)
}

type share struct {
	First int64 `key:"first" required:"true" doc:"The first number."`
	Step  int64 `key:"step" required:"true" doc:"The distance of two numbers."`
	Items int64 `key:"items" required:"true" doc:"All numbers are below it."`
}

type numbers struct{ share }

func (n *numbers) Read(context.Context) (int64, error) {
	if n.First >= n.Items {
		return 0, io.EOF
	}
	n.First += n.Step
	return n.First - n.Step, nil
}

func (n *numbers) Open(_ context.Context, at batch.Position) error {
	if at == nil {
		return nil
	}
	_, err := fmt.Sscan(string(at), &n.First)
	return err
}

func (n *numbers) Position() (batch.Position, error) { return batch.Position(fmt.Sprint(n.First)), nil }

type hash struct{}

func (hash) Process(_ context.Context, n int64) (string, error) { return Hash(n), nil }

// Hash is the work of one number.
func Hash(n int64) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(n)))
	for range rounds {
		sum = sha256.Sum256(sum[:])
	}
	return string(sum[:8])
}

type forget struct{}

func (forget) Write(context.Context, []string) error { return nil }
