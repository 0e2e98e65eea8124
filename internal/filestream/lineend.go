package filestream

import (
	"context"
)

// EndsLinesWithCR reports whether lines end with a carriage return alone, as old Mac
// programs write them: the first 64 KB have one, outside of quotes, and no line feed. It
// is asked before the first Read of an Input that was opened at the start.
func (in *Input) EndsLinesWithCR(ctx context.Context) (bool, error) {
	defer in.Rewind(in.first)
	for len(in.Buffered(in.first)) < headBytes {
		if err := in.More(ctx); ctx.Err() != nil {
			return false, ctx.Err()
		} else if err != nil { // the reading comes to it
			break
		}
	}
	text := in.Buffered(in.first)
	quoted, cr := false, false
	for i, c := range text[:min(headBytes, len(text))] {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			return false, nil
		case c == '\r':
			cr = cr || i+1 < len(text) && text[i+1] != '\n'
		}
	}
	return cr, nil
}

// TurnCR delivers each carriage return as a line feed from here on. Offsets stay.
func (in *Input) TurnCR() {
	in.cr = true
	turnCR(in.buf)
}

func turnCR(text []byte) {
	for i, c := range text {
		if c == '\r' {
			text[i] = '\n'
		}
	}
}
