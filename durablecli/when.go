package durablecli

import (
	"time"

	"github.com/seed8ec063be/durable/internal/wording"
)

// age is wording.Age at this moment.
func (p *printer) age(t time.Time) string { return wording.Age(p.now(), t) }

// past is wording.PastAge at this moment.
func (p *printer) past(t time.Time) string { return wording.PastAge(p.now(), t) }

// ageAndExact is wording.AgeAndExact at this moment.
func (p *printer) ageAndExact(t time.Time) string { return wording.AgeAndExact(p.now(), t) }

// durationFlag is a flag whose value may have days.
type durationFlag struct{ d *time.Duration }

func (f durationFlag) String() string {
	if f.d == nil || *f.d == 0 {
		return ""
	}
	return wording.RoughDuration(*f.d)
}

func (f durationFlag) Set(text string) (err error) {
	*f.d, err = wording.ParseDuration(text)
	return err
}

func (f durationFlag) Type() string { return "duration" }
