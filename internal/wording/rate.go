package wording

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// noBound is what people write to remove a bound. A zero is refused: those who write it may mean that nothing begins.
const noBound = "none"

// ParseBound returns a bound of a queue or a limit: a whole number from 1, or zero for the text none. The error for a text that is no number
// is a *strconv.NumError.
func ParseBound(text string) (int, error) {
	if text == noBound {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, errZeroBound
	case n < 0:
		return 0, errors.New("a bound is not negative: write a whole number from 1, or none to remove the bound")
	}
	return n, nil
}

var errZeroBound = errors.New("a bound of 0 would not stop anything: write a number from 1, or none to remove the bound; to let no run begin, pause its queue")

// ParseRate returns the number and the period of a rate: 10/s, 600/1h, or none.
func ParseRate(text string) (n int, per time.Duration, err error) {
	if text == noBound {
		return 0, 0, nil
	}
	number, period, _ := strings.Cut(text, "/")
	if number == "0" {
		return 0, 0, errZeroBound
	}
	n, err = strconv.Atoi(number)
	if err == nil {
		if period != "" && !strings.ContainsAny(period[:1], "0123456789") {
			period = "1" + period
		}
		per, err = ParseDuration(period)
	}
	if err != nil || n <= 0 || per <= 0 {
		return 0, 0, fmt.Errorf("the rate %q is not understood: write 10/s, 600/1h, or none to remove the bound", text)
	}
	return n, per, nil
}
