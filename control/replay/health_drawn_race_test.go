//go:build !long && race

package replay_test

// drawnCaptures is how many captures TestHealthOfDrawn draws: few, as the race detector is slow. They are too few for bounds.
const drawnCaptures = 50

// eachJudged: TestSecondOpinion has one in so many scenarios judged.
const eachJudged = 3
