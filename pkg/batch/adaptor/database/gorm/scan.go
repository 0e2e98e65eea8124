package gormdb

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

// words yields the bare words of a statement in upper case, and ";", without literals, quoted names and
// comments. It is not a parser.
func words(query string, yield func(word string) bool) {
	tokens(query, func(word string, _ bool) bool { return yield(word) })
}

func tokens(query string, yield func(word string, call bool) bool) {
	for i := 0; i < len(query); {
		c := query[i]
		switch {
		case c == '\'' || c == '"' || c == '`':
			i = after(query, i+1, string(c))
		case c == '[':
			i = after(query, i+1, "]")
		case strings.HasPrefix(query[i:], "--"):
			i += 2
			for i < len(query) && query[i] != '\n' && query[i] != '\r' { // PostgreSQL ends it at either
				i++
			}
		case strings.HasPrefix(query[i:], "/*"):
			i = after(query, i+2, "*/")
		case c == ';':
			if !yield(";", false) {
				return
			}
			i++
		case letter(c):
			j := i + 1
			for j < len(query) && (letter(query[j]) || query[j] >= '0' && query[j] <= '9') {
				j++
			}
			if !yield(strings.ToUpper(query[i:j]), j < len(query) && query[j] == '(') {
				return
			}
			i = j
		default:
			i++
		}
	}
}

func after(query string, from int, end string) int {
	if i := strings.Index(query[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(query)
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// A Query that reads goes to a reader of SQLite.
func reads(query string) bool {
	first, write := "", false
	words(query, func(word string) bool {
		if first == "" {
			first = word
			return word == "WITH"
		}
		switch word {
		case "INSERT", "UPDATE", "DELETE", "REPLACE":
			write = true
		}
		return !write
	})
	switch first {
	case "SELECT", "VALUES", "EXPLAIN", "PRAGMA":
		return true
	case "WITH":
		return !write
	}
	return false
}

func isScript(query string) bool {
	ended, more := false, false
	words(query, func(word string) bool {
		if word == ";" {
			ended = true
			return true
		}
		more = ended
		return !more
	})
	return more
}

// mayBeScript reports whether something follows a semicolon, possibly in a literal.
func mayBeScript(query string) bool {
	i := strings.IndexByte(query, ';')
	return i >= 0 && strings.Trim(query[i:], "; \t\r\n") != ""
}

func resetsAll(query string) bool {
	var first []string
	words(query, func(word string) bool {
		first = append(first, word)
		return len(first) < 2 && word == "RESET"
	})
	return len(first) == 2 && first[1] == "ALL"
}

// Savepoints do not count.
func transactionControl(query string) string {
	first, control := "", ""
	words(query, func(word string) bool {
		switch {
		case first == "":
			first = word
			switch word {
			case "BEGIN", "COMMIT", "END", "ABORT":
				control = word
				return false
			case "ROLLBACK", "START", "PREPARE":
				control = word
				return true
			}
			return false
		case first == "ROLLBACK":
			switch word {
			case "TO":
				control = ""
				return false
			case "WORK", "TRANSACTION":
				return true
			}
			return false
		default: // START TRANSACTION, PREPARE TRANSACTION; PREPARE name is a statement
			if word != "TRANSACTION" {
				control = ""
			}
			return false
		}
	})
	return control
}

// database/sql would act on driver.ErrBadConn.
func withoutBadConn(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("the connection is broken: %v", err) //nolint:errorlint // the chain must end here
	}
	return err
}
