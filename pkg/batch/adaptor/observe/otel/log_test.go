package otel_test

import (
	"bytes"
	"log/slog"
	"sync"

	"github.com/surfin-batch/surfin/internal/chunk"
)

type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func chunkOf(size int) chunk.Config { return chunk.Config{Size: size} }
