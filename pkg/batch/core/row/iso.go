package row

import "time"

// Digit by digit: time.Parse and AppendFormat take several times as long, and every date passes here. Other
// texts go to package time.

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 24 * 60 * 60 * microsPerSecond
	// The days of the years 0 to 9999.
	minISO = Date(-719528)
	maxISO = Date(2932896)
)

func parseISODate(s string) (Date, bool) {
	if len(s) != len(time.DateOnly) || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	year, ok1 := twoDigits(s[0:])
	rest, ok2 := twoDigits(s[2:])
	month, ok3 := twoDigits(s[5:])
	day, ok4 := twoDigits(s[8:])
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return 0, false
	}
	d := dateOfCivil(year*100+rest, month, day)
	if 1 <= month && month <= 12 && 1 <= day && day <= 28 { // every month has these
		return d, true
	}
	if _, m, same := d.civil(); m != month || same != day { // no such day
		return 0, false
	}
	return d, true
}

// UTC, with a T or blank, optional fraction and Z; microseconds since 1970-01-01. Finer fractions are refused.
func parseISOTime(s string) (micros int64, hasZone, ok bool) {
	const withoutFraction = len("2006-01-02T15:04:05")
	if len(s) < withoutFraction || s[10] != 'T' && s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return 0, false, false
	}
	d, ok0 := parseISODate(s[:10])
	hour, ok1 := twoDigits(s[11:])
	minute, ok2 := twoDigits(s[14:])
	second, ok3 := twoDigits(s[17:])
	if !ok0 || !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 59 {
		return 0, false, false
	}
	micros = int64(d)*microsPerDay + int64((hour*60+minute)*60+second)*microsPerSecond
	s = s[withoutFraction:]
	if len(s) > 1 && s[0] == '.' {
		n := 1
		for unit := int64(microsPerSecond / 10); n < len(s) && s[n]-'0' <= 9; n, unit = n+1, unit/10 {
			if unit == 0 && s[n] != '0' {
				return 0, false, false
			}
			micros += int64(s[n]-'0') * unit
		}
		if n == 1 || n > len(".999999999") {
			return 0, false, false
		}
		s = s[n:]
	}
	return micros, s == "Z", s == "" || s == "Z"
}

func twoDigits(s string) (int, bool) {
	tens, ones := s[0]-'0', s[1]-'0'
	return int(tens)*10 + int(ones), tens <= 9 && ones <= 9
}

// AppendMicros appends yyyy-MM-ddTHH:mm:ss.SSSSSSZ of microseconds since 1970-01-01 UTC.
func AppendMicros(dst []byte, micros int64) []byte {
	day := DayOfMicros(micros)
	if day < minISO || day > maxISO {
		return time.UnixMicro(micros).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z07:00")
	}
	rest := micros - int64(day)*microsPerDay
	s, fraction := int(rest/microsPerSecond), int(rest%microsPerSecond)
	dst = append(day.Append(dst), 'T', '0'+byte(s/36000), '0'+byte(s/3600%10), ':', '0'+byte(s/600%6), '0'+byte(s/60%10), ':',
		'0'+byte(s/10%6), '0'+byte(s%10), '.')
	for unit := microsPerSecond / 10; unit > 0; unit /= 10 {
		dst = append(dst, '0'+byte(fraction/unit%10))
	}
	return append(dst, 'Z')
}

// Without zeros at the end, as TimestampLayout.
func appendTimestamp(dst []byte, micros int64) []byte {
	dst = AppendMicros(dst, micros)
	end := len(dst) - 1
	for dst[end-1] == '0' {
		end--
	}
	if dst[end-1] == '.' {
		end--
	}
	return append(dst[:end], 'Z')
}

// DayOfMicros is the UTC day of microseconds since 1970-01-01.
func DayOfMicros(micros int64) Date {
	day := micros / microsPerDay
	if micros%microsPerDay < 0 {
		day--
	}
	return Date(day)
}

// Eras of 400 years begin on 1 March: a leap day is the last of its year.
const (
	daysPerEra  = 146_097
	daysToEpoch = 719_468 // from 0000-03-01
)

// From year 0; a day that does not exist becomes another.
func dateOfCivil(year, month, day int) Date {
	month -= 3
	if month < 0 {
		month += 12
		year--
	}
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	yoe := year - era*400
	doy := (153*month+2)/5 + day - 1
	return Date(era*daysPerEra + yoe*365 + yoe/4 - yoe/100 + doy - daysToEpoch)
}

// Append appends yyyy-MM-dd.
func (d Date) Append(dst []byte) []byte {
	if d < minISO || d > maxISO {
		return d.Time().AppendFormat(dst, time.DateOnly)
	}
	y, m, day := d.civil()
	return append(dst, '0'+byte(y/1000), '0'+byte(y/100%10), '0'+byte(y/10%10), '0'+byte(y%10), '-',
		'0'+byte(m/10), '0'+byte(m%10), '-', '0'+byte(day/10), '0'+byte(day%10))
}

func (d Date) civil() (year, month, day int) {
	days := int(d) + daysToEpoch
	era := days / daysPerEra
	if days < 0 {
		era = (days - daysPerEra + 1) / daysPerEra
	}
	doe := days - era*daysPerEra
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	year, month, day = yoe+era*400, mp+3, doy-(153*mp+2)/5+1
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}
