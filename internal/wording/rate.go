package wording

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseRate returns the number and the period of a rate: 10/s, 600/1h, or 0 for none.
func ParseRate(text string) (n int, per time.Duration, err error) {
	if text == "0" {
		return 0, 0, nil
	}
	number, period, _ := strings.Cut(text, "/")
	n, err = strconv.Atoi(number)
	if err == nil {
		if period != "" && !strings.ContainsAny(period[:1], "0123456789") {
			period = "1" + period
		}
		per, err = ParseDuration(period)
	}
	if err != nil || n <= 0 || per <= 0 {
		return 0, 0, fmt.Errorf("the rate %q is not understood: write 10/s, 600/1h, or 0 for no bound", text)
	}
	return n, per, nil
}
