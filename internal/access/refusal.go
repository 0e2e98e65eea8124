package access

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Refusal is a request that was not admitted. It changed nothing.
type Refusal struct {
	// Status is the status code of HTTP.
	Status int
	Text   string
	// RetryAfter is the wait before a repetition; 0 means that it would be
	// refused again.
	RetryAfter time.Duration
}

// SetRetryAfter sets the header, if there is a wait.
func (r *Refusal) SetRetryAfter(h http.Header) {
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
	}
}

func refuse(status int, text string) *Refusal { return &Refusal{Status: status, Text: text} }
