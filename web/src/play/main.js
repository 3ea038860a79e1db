import "./play.css";
import { themeButton } from "../common/theme.js";
import { byId } from "../common/dom.js";

themeButton(byId("theme"));
