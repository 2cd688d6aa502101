package durable

import "fmt"

// given notes which options of one call were given: each bit stands for one, or for several of which one may be
// given. What the last of two says would hold without a word otherwise.
type given uint16

// once returns ErrInvalidConfig if the option was given before.
func (g *given) once(bit given, option string) error {
	if *g&bit != 0 {
		return fmt.Errorf("%w: the option %s is given twice, or beside another that it excludes: leave one of them out", ErrInvalidConfig, option)
	}
	*g |= bit
	return nil
}
