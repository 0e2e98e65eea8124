package access

import "time"

// MaxBody is the size of a request's body, in bytes.
const MaxBody = 1 << 20

// RequestTime is the time that the work of a request may take.
const RequestTime = time.Minute

// RetryAfter is the wait that clients are advised if the server stops, or the
// database is away.
const RetryAfter = 5 * time.Second

// AnswerTime is the time in which a database must answer a check (rule AP1).
const AnswerTime = 2 * time.Second

const slowTime = 2 * time.Second
